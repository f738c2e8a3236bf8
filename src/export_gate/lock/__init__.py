"""The interface lock: what a model's callers rely on, as a file that is reviewed like code."""
