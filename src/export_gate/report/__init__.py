"""Turn findings into what people read: Markdown, terminal text, JSON."""
