"""Processes, pipes, stages and failures of the worker; independent of what a model's process does."""
