"""`export-gate init`: a model's factory to a first config."""
