"""Note which environment variables are asked for, and which of the caller's the project's code does not get."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from export_gate.wall.variables import is_secret
from export_gate.worker.process.files_read import is_installed
from export_gate.worker.process.recording import ALL

LOOKED_UP_BY = ("os", "_collections_abc", "collections.abc")
"""Modules whose frames only pass a look-up on."""
OF_THE_SYSTEM = (
    "_", "ALL_PROXY", "BROWSER", "BUILDKITE", "CI_", "CIRCLE", "CLICOLOR", "COLORTERM", "COLUMNS", "COV_", "COVERAGE_",
    "CURL_CA_BUNDLE", "DBUS_", "DEBUG", "DISPLAY", "EDITOR", "FORCE_COLOR", "FTP_PROXY", "GITHUB_", "GITLAB_", "GPG_",
    "HOSTNAME", "HTTPS_PROXY", "HTTP_PROXY", "JENKINS_", "JPY_", "JUPYTER_", "LINES", "LS_COLORS", "NETRC", "NO_COLOR",
    "NO_PROXY", "OLDPWD", "PAGER", "PYTEST_", "PYTHON", "REQUESTS_CA_BUNDLE", "RUNNER_", "SSH_", "SUDO_", "TERM_",
    "TRAVIS", "VISUAL", "VSCODE_", "WAYLAND_", "WINDOWID",
)  # fmt: skip
"""How names begin that packages look for in any process; a model does not depend on them."""


@contextmanager
def look_ups_noted(
    names: Collection[str],
    roots: Collection[Path],
    package: str,
    asked: Callable[[str], object] = lambda _: None,
) -> Iterator[Callable[[], list[str]]]:
    """Watch `os.environ`; yields what says which of the names the project's code looked for.

    A package that the project's code calls looks for it on the project's behalf, except while it is imported, and
    except for what any process is asked. Look-ups by native code are not seen.

    Args:
        names: Variables that the process does not have.
        roots: Folders of the project's code.
        package: A package that is the project's wherever it is installed; empty for none.
        asked: Told of every variable that anybody asks for, set or not; `*` if all are listed.
    """
    found: set[str] = set()
    wanted, note = frozenset(names), found.add

    class Noted(type(os.environ)):  # type: ignore[misc] # os._Environ, which is not public
        def __iter__(self) -> Any:
            asked(ALL)
            return super().__iter__()

        def __getitem__(self, name: Any) -> Any:
            if isinstance(name, str):
                asked(name)
            try:
                return super().__getitem__(name)
            except KeyError:
                if name in wanted and _is_for_project(name, sys._getframe(1), roots, package):  # noqa: SLF001
                    note(name)
                raise

    before = os.environ.__class__
    # The class is swapped, not the object: modules hold the object itself by `from os import environ`.
    os.environ.__class__ = Noted
    try:
        yield lambda: sorted(found)
    finally:
        os.environ.__class__ = before


def _is_for_project(name: str, frame: FrameType | None, roots: Collection[Path], package: str) -> bool:
    """Whether the project's own code asked, or has a package ask."""
    # Lower case: `http_proxy` and its like, which HTTP libraries look for in both spellings.
    may_be_passed_on = not is_secret(name) and not name.startswith(OF_THE_SYSTEM) and not name.islower()
    is_direct = True
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module not in LOOKED_UP_BY:
            # A frame of importlib: the package asks while it is imported, not on the project's behalf.
            if module.partition(".")[0] == "export_gate" or module.startswith("importlib."):
                return False
            if _is_own(module, frame.f_code.co_filename, roots, package):
                return is_direct or may_be_passed_on
            is_direct = False
        frame = frame.f_back
    return False


def _is_own(module: str, file: str, roots: Collection[Path], package: str) -> bool:
    if package and module.partition(".")[0] == package:
        return True
    return not is_installed(file) and any(Path(file).is_relative_to(root) for root in roots)
