"""Say whether a push changes only files that the config says no model reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from export_gate.config import Config
from export_gate.run.change import find_change
from export_gate.run.git import UnreadableError, git_line, git_output, git_paths
from export_gate.run.named import named_files
from export_gate.run.pushing import DIFF, few
from export_gate.wall.errors import UserError


def nothing_to_verify(config: Config, environment: Mapping[str, str], python: str | None = None) -> str | None:
    """Why a push cannot change a verdict: it changes only files of `ignore`; None if it may, or if this is no push.

    The config and its lock decide what is checked and models read the files that it names, so no pattern covers them.
    Neither does one cover a workflow, hook or interpreter with which the push loosens the check: the usual run says so.
    """
    start, end = environment.get("PRE_COMMIT_FROM_REF"), environment.get("PRE_COMMIT_TO_REF")
    root = git_line(config.path.resolve().parent, "rev-parse", "--show-toplevel")
    if not (config.ignore and start and end and root and _is_pushed(config, Path(root), end)):
        return None
    try:
        # As two files (`--no-renames`): git would list only the new name, and a model may have read the old one.
        changed = git_paths(
            Path(root), *DIFF, "--ignore-submodules=none", "--no-renames", f"{start}^{{commit}}", f"{end}^{{commit}}"
        )
        named = named_files(config, Path(root))
        if not changed or not all(_is_ignored(path, config, named) for path in changed):
            return None
        change, _ = find_change(config, start, environment, python)
    except (UserError, UnreadableError):
        return None
    if change is None or change.of("loosened"):
        return None
    return f"nothing to verify: the push changes only files of `ignore`: {few(changed)}"


def _is_pushed(config: Config, root: Path, commit: str) -> bool:
    """Whether the commit has the config as it is here: patterns that nobody else sees cover nothing."""
    path = config.path.resolve()
    if root.resolve() not in path.parents:
        return False
    name = path.relative_to(root.resolve()).as_posix()
    # Diff alone is not enough: it is empty for a config that git does not track.
    entry = git_output(root, "ls-tree", "-z", f"{commit}^{{commit}}", "--", name)
    return bool(entry) and git_output(root, *DIFF, f"{commit}^{{commit}}", "--", name) == b""


def _is_ignored(path: str, config: Config, named: Collection[str]) -> bool:
    # A config may be a link to the file that is edited.
    own = {
        name for path in (config.path, config.path.resolve()) for name in (path.name, path.with_suffix(".lock").name)
    }
    # `.` is the whole checkout. `name.`: a module is named without its ending, `.py` or that of a compiled one.
    is_named = any(name in (path, ".") or path.startswith((f"{name}/", f"{name}.")) for name in named)
    return (
        path.rpartition("/")[2] not in own
        and not is_named
        and any(_matches(pattern, path) for pattern in config.ignore)
    )


def _matches(pattern: str, path: str) -> bool:
    """`**` is any number of folders, `*` and `?` stay within one; a pattern without a slash matches the file's name.

    A slash at the end stands for everything in the folder, and one at the start means the root, as elsewhere in git.
    """
    is_path = "/" in pattern or "**" in pattern
    pattern = f"{pattern.removeprefix('/')}{'**' if pattern[1:].endswith('/') else ''}"
    # The longest first: an alternation takes the first that fits.
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    regex = "".join(
        {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts
    )
    return re.fullmatch(regex, path if is_path else path.rpartition("/")[2]) is not None
