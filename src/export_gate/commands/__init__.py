"""The commands of the command line, by what they work on. Heavy imports wait for the command that needs them."""
