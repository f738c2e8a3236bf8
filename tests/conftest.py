"""Makes the workers that tests start forked copies of a preloaded process."""

from __future__ import annotations

from harness import preloaded

preloaded.install()
