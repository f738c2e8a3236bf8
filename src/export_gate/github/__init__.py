"""Publish results on GitHub: one comment, the job summary, annotations and outputs.

`publish` is the first stage (in the run itself); `fork` is the second stage (for results of untrusted runs).
"""
