"""Findings to what people read: Markdown, terminal text, JSON."""
