"""A sentence encoder with padding."""
