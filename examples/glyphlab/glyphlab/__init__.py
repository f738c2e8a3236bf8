"""A glyph classifier small enough to read in a minute."""
