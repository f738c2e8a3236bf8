"""Output leaves as NumPy arrays, and their comparison. Does not need torch."""
