"""A linear layer whose answer can be worked out by hand."""
