"""The rows of the benchmark, one file a group: each has ``measure(run)``."""
