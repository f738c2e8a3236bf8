"""Turn observations into an outcome: judged, merged, locked, and written to the report folder."""
