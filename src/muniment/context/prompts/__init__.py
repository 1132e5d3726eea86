"""The prompts of a turn, one file each."""
