"""Read the workflows of the base and of the change: which steps run the gate, and with what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from export_gate.loosening.record import CONFIG, Alteration
from export_gate.loosening.steps import Workflow
from export_gate.loosening.workflow import compare_workflows
from export_gate.run.base import Base, Wanted, file_at
from export_gate.run.git import UnreadableError, git_output, git_paths
from export_gate.run.hooks import HOOKS, read_hooks
from export_gate.run.pushing import SCRIPTS, STARTERS
from export_gate.run.workflow_file import read_script, read_workflows
from export_gate.run.workflow_job import GATE
from export_gate.wall.errors import UserError

MAX_BYTES = 512 * 1024
PREFERRED = {
    "action.yaml": ("action.yml",),
    "makefile": ("GNUmakefile",),
    "Makefile": ("GNUmakefile", "makefile"),
}
"""File -> those that GitHub or make reads in its place if they are in the same folder."""
Words = tuple[str, ...]


def workflow_alterations(base: Base, environment: Mapping[str, str]) -> tuple[Alteration, ...]:
    """What the change does to the steps and hooks that run the gate.

    Args:
        base: the commit, and the checkout whose workflows run.
        environment: for git, and to know the action by the repository that it comes from.
    """
    repository = environment.get("GITHUB_ACTION_REPOSITORY") or GATE
    words = (GATE, "export_gate", repository, "./")
    # All workflows, as the job of one may have the name of the gate's check. With a backslash, YAML spells any word.
    asked: tuple[tuple[Words, Words], ...] = (((*words, "jobs", "\\"), STARTERS), ((GATE, "export_gate"), SCRIPTS))
    before, scripts_before = (dict(_past(base, some, places, environment)) for some, places in asked)
    now, scripts_now = (dict(_present(base.root, some, places, environment)) for some, places in asked)
    old, new = _read(before, scripts_before, repository), _read(now, scripts_now, repository)
    # One that this change did not break says nothing about the change.
    broken = [name for name in new if new[name] is None and before.get(name) != now[name]]
    unread = [name for name in broken if _ran(old.get(name)) and any(w in before.get(name, now[name]) for w in words)]
    said = (Alteration(effect="loosened", model=CONFIG, what=f"{name}: cannot be read any more") for name in unread)
    read = [{name: workflow for name, workflow in each.items() if workflow} for each in (old, new)]
    hidden = _hidden(base, [name for name, workflow in read[0].items() if workflow.steps], environment)
    return (*said, *hidden, *compare_workflows({n: w for n, w in read[0].items() if n not in unread}, read[1]))


def _hidden(base: Base, names: Iterable[str], environment: Mapping[str, str]) -> Iterator[Alteration]:
    """Files that still run the gate, and beside which the change puts one that is read in their place."""
    for name in names:
        place = base.root / name
        for other in (place.with_name(each) for each in PREFERRED.get(place.name, ())):
            wanted = Wanted(path=other, noun="script", largest_bytes=MAX_BYTES)
            with suppress(UserError):
                if other.exists() and file_at(base, wanted, environment) is None:
                    what = f"{name}: hidden by {other.name}, which is read in its place"
                    yield Alteration(effect="loosened", model=CONFIG, what=what)


def _read(texts: Mapping[str, str], scripts: Mapping[str, str], repository: str) -> dict[str, Workflow | None]:
    read = {name: read_script(name, text) for name, text in scripts.items() if name not in texts}
    running = [name for name, script in read.items() if script.steps]
    workflows = read_workflows({name: text for name, text in texts.items() if name != HOOKS}, repository, running)
    hooks = {name: read_hooks(text) for name, text in texts.items() if name == HOOKS}
    return {**workflows, **hooks, **read}


def _ran(workflow: Workflow | None) -> bool:
    """Whether the file ran the gate, or nobody can say."""
    return workflow is None or bool(workflow.steps)


def _asked(words: Words, places: Words, commit: str | None) -> Words:
    patterns = (part for word in words for part in ("-e", word))
    return ("grep", "-l", "-a", "-i", "-F", *patterns, commit or "--untracked", "--", *places)


def _past(base: Base, words: Words, places: Words, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The base's files with any of the words."""
    for name in git_paths(base.root, *_asked(words, places, base.commit), environment=environment):
        # git grep puts `<commit>:` before each path.
        path = name.partition(":")[2]
        with suppress(UserError, UnreadableError):
            wanted = Wanted(path=base.root / path, noun="workflow", largest_bytes=MAX_BYTES)
            yield path, (file_at(base, wanted, environment) or b"").decode("utf-8", "replace")


def _present(root: Path, words: Words, places: Words, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in git_paths(root, *_asked(words, places, None), environment=environment):
        path = root / name
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_BYTES:
                yield name, path.read_text(encoding="utf-8", errors="replace")
    # What a sparse checkout leaves out runs all the same.
    for entry in git_paths(root, "ls-files", "-t", "--", *places, environment=environment):
        name = entry.removeprefix("S ")
        if name != entry and not (root / name).exists():
            content = git_output(root, "cat-file", "blob", f":{name}", environment=environment) or b""
            yield name, content.decode("utf-8", "replace")
