"""Reuse verdicts of models on which nothing has changed: what they depend on, where they are kept, what still holds.

The modules that say whether a verdict holds import little, since a push that changes no model waits for nothing else.
"""
