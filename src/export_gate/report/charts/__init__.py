"""Charts of results: pure functions from records to records of SVG path data, which a template lays out."""
