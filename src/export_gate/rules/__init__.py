"""Observations to findings: one file per rule, listed in `RULES`."""
