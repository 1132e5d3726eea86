"""The model and its rules: pure values, standard library only."""
