"""What every request passes through, one concern a file."""
