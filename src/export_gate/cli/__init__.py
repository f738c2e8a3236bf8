"""The command line: one file per typed command. Only this package prints and exits.

A command imports what it needs when it runs: `--help` and `validate` must not load Jinja2, urllib3 or rich.
"""
