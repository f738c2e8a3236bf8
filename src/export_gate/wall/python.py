"""How the project's interpreter is started."""

from __future__ import annotations

FLAGS = ("-X", "utf8", "--check-hash-based-pycs", "always")
"""UTF-8 everywhere; and no compiled file stands for a source that it was not made of.

A change could commit one that says of itself that it need not be compared with its source (PEP 552): Python would run
it, while reviewers, the cache and a push see the source alone.
"""
