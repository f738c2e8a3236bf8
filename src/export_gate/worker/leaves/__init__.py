"""Output leaves as NumPy arrays, and the comparison of two of them. Needs no torch."""
