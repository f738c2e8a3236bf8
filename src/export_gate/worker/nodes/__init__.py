"""An artifact's values along its graph beside those of the program or of eager: the first node that differs."""
