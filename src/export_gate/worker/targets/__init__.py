"""The artifacts a program is exported to, listed in `TARGETS`."""
