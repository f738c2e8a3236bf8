"""Clean virtual environments that hold chosen distributions of the running one, by links: quick, and no network."""

from __future__ import annotations

import venv
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement


def clean_environment(folder: Path, *roots: str) -> Path:
    """`bin` of a new environment with the roots' requirements, and those roots that are not this project."""
    venv.create(folder, symlinks=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    for name in {name for root in roots for name in (root, *needed(root))} - {"export-gate"}:
        link(name, site)
    return folder / "bin"


def needed(root: str) -> set[str]:
    """Names of the distributions that `root` requires without extras, directly or not."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        for text in distribution(waiting.pop()).requires or ():
            requirement = Requirement(text)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and requirement.name not in found:
                found.add(requirement.name)
                waiting.append(requirement.name)
    return found


def link(name: str, site: Path) -> None:
    """Makes the files of an installed distribution visible in another site-packages."""
    installed = distribution(name)
    tops = {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}
    assert tops, f"{name} lists no files"
    for top in tops:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(installed.locate_file(top))))
