"""The interface lock: what a model's callers rely on, in a file that is reviewed like code."""
