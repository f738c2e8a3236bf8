"""The control set: which inputs are tried, by name, seed and hash."""
