"""One completion: its prompt, its lease, the model's answer and what is kept of it."""
