"""Guesses at what a model takes, for a starter config: from forward's source, the layers, names and a trial."""
