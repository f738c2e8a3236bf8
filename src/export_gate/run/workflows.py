"""Read the workflows of the base and of the change: which steps run the gate, and with what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from export_gate.loosening.record import CONFIG, Alteration
from export_gate.loosening.steps import Workflow
from export_gate.loosening.workflow import compare_workflows
from export_gate.run.base import Base, Wanted, file_at
from export_gate.run.git import UnreadableError, git_output, git_paths
from export_gate.run.hooks import HOOKS, read_hooks
from export_gate.run.pushing import SCRIPTS, STARTERS
from export_gate.run.script_links import linked
from export_gate.run.scripts import is_shell, loaded, may_be_shell, names_in, script_lines
from export_gate.run.workflow_file import DEPTH, read_script, read_workflows
from export_gate.run.workflow_job import GATE, Known
from export_gate.wall.errors import UserError

MAX_BYTES = 512 * 1024
TOO_LARGE = f"{GATE}: ["
"""In place of the text of a larger file, or of a link at the base: it cannot be read as YAML, and may run the gate."""
WORKFLOWS = ".github/workflows/"
"""A file there that nobody here can read may have a job with the name of the gate's check."""
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
    asked: tuple[tuple[Words, Words], ...] = (
        ((*words, "jobs", "using", "repos", "\\"), STARTERS),
        ((GATE, "export_gate"), SCRIPTS),
    )
    before, scripts_before = (dict(_past(base, some, places, environment)) for some, places in asked)
    now, scripts_now = (dict(_present(base.root, some, places, environment)) for some, places in asked)
    # Those of the base first: the change must not hide one behind others.
    # Files that name the gate first: there may be more names than are looked for.
    texts = tuple(sorted((*before.values(), *scripts_before.values()), key=_is_silent))
    texts += tuple(sorted((*now.values(), *scripts_now.values()), key=_is_silent))
    named = names_in(texts)
    named_before, named_now = _of_names(named, asked[1][0], base, environment)
    scripts_before |= named_before
    scripts_now |= named_now
    origin = _origin(environment)
    past, present = _shells(named, texts, base, environment)
    past |= linked(named, base.commit, base.root, environment)
    present |= linked(named, "HEAD", base.root, environment)
    old = _read(before, scripts_before, past, repository, origin)
    new = _read(now, scripts_now, present, repository, origin)
    # One that this change did not break says nothing about the change.
    broken = [name for name in new if new[name] is None and before.get(name) != now[name]]
    unread = [
        name
        for name in broken
        if _ran(old.get(name)) and (WORKFLOWS in name or any(word in before.get(name, now[name]) for word in words))
    ]
    said = (
        Alteration(
            effect="loosened", model=CONFIG, what=f"{name}: cannot be read{' any more' if old.get(name) else ''}"
        )
        for name in unread
    )
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


def _only(named: Words, files: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The files of these names: git takes a name for that of a folder, too, and finds what is in it."""
    return {path: text for path, text in files if _is_of(path, named)}


def _of_names(
    named: Words, words: Words, base: Base, environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The files of these names that have one of the words, at the base and now."""
    if not named:
        return {}, {}
    places = tuple(f":(glob)**/{name}" for name in named)
    past, present = _past(base, words, places, environment), _present(base.root, words, places, environment)
    return _only(named, past), _only(named, present)


def _shells(
    named: Words, texts: Iterable[str], base: Base, environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Scripts of shells of these names, and of those that they name in turn, at the base and now."""
    past: dict[str, str] = {}
    present: dict[str, str] = {}
    wanted, texts = named, tuple(texts)
    for _ in range(DEPTH):
        fed = {name for text in texts for name in loaded(text)}
        # An empty word is in every file.
        asked = tuple(name for name in wanted if name in fed or may_be_shell(name))
        pair = _of_names(asked, ("",), base, environment)
        found = tuple({n: text for n, text in each.items() if is_shell(n, text) or _is_of(n, fed)} for each in pair)
        texts = tuple(text for known, each in zip((past, present), found, strict=True) for text in _added(known, each))
        wanted = names_in(texts)
    return past, present


def _is_of(path: str, names: Collection[str]) -> bool:
    return any(f"/{path}".endswith(f"/{name}") for name in names)


def _added(known: dict[str, str], found: Mapping[str, str]) -> list[str]:
    """The texts of files that were not known; they are from now on."""
    new = {name: text for name, text in found.items() if name not in known}
    known.update(new)
    return list(new.values())


def _origin(environment: Mapping[str, str]) -> str:
    """The workflow of this repository that the run comes from, as GitHub's runner says; empty elsewhere."""
    owner, path = environment.get("GITHUB_REPOSITORY", ""), environment.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
    return path.removeprefix(f"{owner}/") if owner and path.startswith(f"{owner}/") else ""


def _read(
    texts: Mapping[str, str], scripts: Mapping[str, str], beside: Mapping[str, str], repository: str, origin: str
) -> dict[str, Workflow | None]:
    read = {name: read_script(name, text) for name, text in scripts.items() if name not in texts}
    running = [name for name, script in read.items() if script.steps]
    files = {name: text for name, text in texts.items() if name != HOOKS}
    known = Known(
        repository=repository.lower(),
        scripts=tuple(running),
        beside={name: tuple(script_lines(text)) for name, text in beside.items()},
    )
    workflows = read_workflows(files, known, origin)
    hooks = {name: read_hooks(text, known) for name, text in texts.items() if name == HOOKS}
    return {**workflows, **hooks, **read}


def _is_silent(text: str) -> bool:
    return GATE not in text.lower().replace("_", "-")


def _ran(workflow: Workflow | None) -> bool:
    """Whether the file ran the gate, or nobody can say."""
    return workflow is None or bool(workflow.steps)


def _asked(words: Words, places: Words, *where: str) -> Words:
    patterns = (part for word in words for part in ("-e", word))
    return ("grep", "-l", "-a", "-i", "-F", *patterns, *where, "--", *places)


def _past(base: Base, words: Words, places: Words, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The base's files with any of the words."""
    for name in git_paths(base.root, *_asked(words, places, base.commit), environment=environment):
        # git grep puts `<commit>:` before each path.
        path = name.partition(":")[2]
        wanted = Wanted(path=base.root / path, noun="workflow", largest_bytes=MAX_BYTES)
        try:
            yield path, (file_at(base, wanted, environment) or b"").decode("utf-8", "replace")
        except UserError:
            yield path, TOO_LARGE
        except UnreadableError:
            continue


def _present(root: Path, words: Words, places: Words, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    elsewhere = _not_as_stored(root, places, environment)
    # Tracked files as well: with `--untracked` alone, git leaves out those of which it is told to ignore the name.
    asked = (_asked(words, places, *where) for where in ((), ("--untracked",)))
    found = dict.fromkeys(name for each in asked for name in git_paths(root, *each, environment=environment))
    for name in found:
        path = root / name
        with suppress(OSError):
            if name not in elsewhere and path.is_file() and not path.is_symlink():
                is_large = path.stat().st_size > MAX_BYTES
                yield name, TOO_LARGE if is_large else path.read_text(encoding="utf-8", errors="replace")
    for name in git_paths(root, *_asked(words, places, "--cached"), environment=environment) if elsewhere else ():
        if name in elsewhere:
            content = git_output(root, "cat-file", "blob", f":{name}", environment=environment) or b""
            yield name, TOO_LARGE if len(content) > MAX_BYTES else content.decode("utf-8", "replace")


def _not_as_stored(root: Path, places: Words, environment: Mapping[str, str]) -> frozenset[str]:
    """Tracked files of which the working tree has none, or another text: what is committed runs all the same."""
    tags = git_paths(root, "ls-files", "-t", "--", *places, environment=environment)
    absent = (entry[2:] for entry in tags if entry.startswith("S ") and not (root / entry[2:]).exists())
    # `!` is where no line of .gitattributes says an encoding. A list of exclusions alone starts from all files.
    encoded = git_paths(root, "ls-files", "--", ":(exclude,attr:!working-tree-encoding)", environment=environment)
    return frozenset((*absent, *encoded))
