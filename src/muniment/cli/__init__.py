"""The command line: one command group a file, all over `open_memory`."""
