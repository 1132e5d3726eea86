"""How well recall does on question sets: the measured path is the product's own."""
