"""Words: how text becomes the terms that are searched."""
