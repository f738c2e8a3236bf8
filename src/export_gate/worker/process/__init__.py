"""Processes, pipes, stages and failures of the worker; knows nothing about what a model's process does."""
