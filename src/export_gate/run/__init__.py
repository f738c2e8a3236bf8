"""A config and an order to observations: planned, sent to the worker, sealed."""
