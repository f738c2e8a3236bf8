"""`export-gate init`: write a first config for a model's factory."""
