"""Compare an artifact's values along its graph with those of the program or of eager: find the first that differs."""
