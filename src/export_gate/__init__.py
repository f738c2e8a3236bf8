"""export-gate: a required check that a PyTorch model still means the same thing after export."""

__version__ = "0.1.0"
