"""The command line: one file per typed command. Only this package prints and exits."""
