"""Where a path of the checkout leads: git keeps the text of a link, and the content is that of another file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MOST_LINKS = 40
"""Links behind each other; the system follows no more."""


def followed(path: Path, root: Path) -> Iterator[Path]:
    """The path, each link on the way and where it leads, as far as they are in the checkout.

    Args:
        path: absolute, below `root`; of a folder, the links in it are followed too.
        root: of the checkout.
    """
    yield from dict.fromkeys(way(path, root))
    if path.is_dir():
        for folder, inner, files in os.walk(path):
            links = (Path(folder, name) for name in sorted((*inner, *files)))
            yield from (place for link in links if link.is_symlink() for place in way(link, root))


def way(path: Path, root: Path) -> Iterator[Path]:
    """The same without the links in a folder; any text may be a path."""
    yield path
    for _ in range(MOST_LINKS):
        below = (up for up in (*reversed(path.parents), path) if root in up.parents)
        link = next((up for up in below if os.path.islink(up)), None)  # noqa: PTH114 - no error for a text that is too long
        if link is None:
            return
        yield link
        path = Path(os.path.normpath(link.parent / link.readlink() / path.relative_to(link)))
        if root not in path.parents:
            return
        yield path
