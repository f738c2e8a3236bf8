"""Compare two configs by what they check: what a change loosens, tightens or replaces. No file is read here."""
