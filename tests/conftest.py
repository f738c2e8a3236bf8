"""Puts this folder on the path of the tests below it, for `judge_corpus.py` and `github_server.py`."""
