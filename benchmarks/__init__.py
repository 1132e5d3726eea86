"""What is measured: printed as tables, written as JSON, never a timed test."""
