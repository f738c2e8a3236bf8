"""Results -> what GitHub shows of a run: one comment, the job summary, annotations and outputs.

The order of things is in `publish` (the run itself) and `fork` (the second stage, for results of strangers).
"""
