"""What was noted of a model's process, and what is known of it otherwise, as its dependencies."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from export_gate.wall.contract import Job
from export_gate.wall.dependencies import Dependencies
from export_gate.wall.repository import repository_root
from export_gate.worker.process.places import is_foreign, site_of, source_of
from export_gate.worker.process.recording import Seen, absolute
from export_gate.worker.process.scanning import READERS, Scanned, scan

MOST_FILES = 5000
"""A model that reads more is verified again each time: to compare them all would take as long."""
_SYSTEM_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("usr", "lib", "lib64", "bin"))
_GENERATED = "torchinductor_"
"""How the folder begins in which torch keeps what it compiled."""
_SPAWNING = (
    "multiprocessing.popen_spawn_posix",
    "multiprocessing.popen_forkserver",
    "multiprocessing.popen_spawn_win32",
)


def find_dependencies(seen: Seen, job: Job) -> Dependencies:
    """Everything that the verdict on the job's model may depend on."""
    try:
        return _found(seen, job)
    except Exception as error:  # noqa: BLE001 - the model is verified; only its verdict cannot be reused
        why = f"its dependencies were not found ({type(error).__name__}: {error})"
        return Dependencies(model=job.contract.name, unknown=(why,))


def _found(seen: Seen, job: Job) -> Dependencies:
    seen.take_in()
    is_passing = _passing(job)
    names = {source_of(name) for name in (*seen.opened, *seen.looked, *_module_files(), *_mapped(), *_python())}
    files = {name for name in names if not is_foreign(name) and not is_passing(name)}
    sources = {name: scan(Path(name)) for name in sorted(files) if name.endswith(".py")}
    files |= (set(_named(sources, job)) - seen.written) | set(_python())  # what it only wrote is no input
    modules = {*sys.modules, *seen.imported}
    unknown = {*seen.unknown, *_unknown(sources, files, job)}
    return Dependencies(
        model=job.contract.name,
        files=tuple(sorted(files)),
        missing=tuple(sorted(seen.missing & files)),
        written=tuple(sorted(name for name in seen.written if not is_foreign(name) and not is_passing(name))),
        folders=tuple(sorted(name for name in seen.listed if not is_foreign(name) and not is_passing(name))),
        variables=tuple(sorted(seen.asked)),
        modules=tuple(sorted({name.partition(".")[0] for name in modules})),
        path=tuple(dict.fromkeys(folder for folder in map(absolute, _search_path()) if not is_foreign(f"{folder}/"))),
        packages=_packages(modules),
        sites=_sites(names),
        unknown=tuple(sorted(unknown)),
    )


def _search_path() -> Iterator[str]:
    yield from (entry or os.curdir for entry in sys.path if isinstance(entry, str))


def _passing(job: Job) -> Callable[[str], bool]:
    """What says whether a file is of the report folder, a compiler's, or a temporary one that is gone."""
    # `artifacts/MODEL` in the report folder: other files there are nothing that the gate writes meanwhile.
    artifacts = Path(job.artifacts).parent
    made, report = f"{artifacts}{os.sep}", str(artifacts.parent)
    root = f"{repository_root(Path(job.base))}{os.sep}"
    temporary = tuple(f"{place}{os.sep}" for place in {tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir())})

    def is_passing(path: str) -> bool:
        if path.startswith(temporary) and not path.startswith(root) and not os.path.lexists(path):
            return True
        # With a separator behind it, or the report folder itself would not count.
        is_report = path == report or f"{path}{os.sep}".startswith(made)
        # Code without a file, such as `<string>`, is one in the current folder once its name is made absolute.
        return is_report or f"{os.sep}<" in path or f"{os.sep}{_GENERATED}" in path or _is_compiled(path)

    return is_passing


def _is_compiled(path: str) -> bool:
    """Whether Python compiled it; the folder may have other files."""
    folder, _, name = path.rpartition(os.sep)
    return folder.endswith("__pycache__") and ".pyc" in name


def _module_files() -> Iterator[str]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield absolute(file)


def _mapped() -> Iterator[str]:
    """Files that are mapped into memory, also by native code; not the system's libraries, nor shared writing."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for path in {line[line.index("/") :] for line in lines if "/" in line and " rw-s " not in line}:
        if not path.startswith(_SYSTEM_LIBRARIES) and not path.endswith(" (deleted)") and os.path.isfile(path):  # noqa: PTH113
            yield path


def _python() -> tuple[str, ...]:
    """What the interpreter is made of."""
    shared = [sysconfig.get_config_var(name) or "" for name in ("LIBDIR", "INSTSONAME")]
    places = [os.path.realpath(sys.executable), os.path.join(sys.prefix, "pyvenv.cfg")]  # noqa: PTH118
    places += [os.path.realpath(os.path.join(*shared))] if all(shared) else []  # noqa: PTH118
    return tuple(place for place in places if os.path.isfile(place))  # noqa: PTH113


def _named(sources: dict[str, Scanned], job: Job) -> Iterator[str]:
    """Files that the sources name, from the config's folder, the source's own or those of `pythonpath`."""
    for source, scanned in sources.items():
        for text in scanned.texts:
            for folder in (job.base, os.path.dirname(source), *job.pythonpath):  # noqa: PTH120
                path = os.path.normpath(os.path.join(folder, text))  # noqa: PTH118
                if os.path.isfile(path) and not is_foreign(path):  # noqa: PTH113
                    yield path


def _unknown(sources: dict[str, Scanned], files: Iterable[str], job: Job) -> Iterator[str]:
    known = tuple(files)
    if len(known) > MOST_FILES:
        yield f"it reads more than {MOST_FILES} files"
    if any(name in sys.modules for name in _SPAWNING):
        yield "it starts other processes of Python"
    for source, scanned in sources.items():
        if scanned.clock:
            yield f"it reads the clock ({source}:{scanned.clock})"
        for reader in scanned.readers if not job.contract.paths else ():
            endings = READERS[reader][1]
            if not endings or not any(name.endswith(endings) for name in known):
                yield f"{reader} reads files that Python does not see ({source}); list them in `paths`"


def _packages(modules: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Folders of the project's packages, with what was imported from them or looked for in them."""
    found: dict[str, set[str]] = {}
    children: dict[str, set[str]] = {}
    for name in modules:
        parent, _, child = name.rpartition(".")
        children.setdefault(parent, set()).add(child)
    for name, module in list(sys.modules.items()):
        for folder in _folders_of(module):
            place = absolute(folder)
            if place and not is_foreign(f"{place}{os.sep}"):
                found.setdefault(place, set()).update(children.get(name, ()))
    return {folder: tuple(sorted(names)) for folder, names in sorted(found.items())}


def _folders_of(module: object) -> list[str]:
    """Where a package is; some modules answer to any name, also to this one."""
    path = getattr(module, "__path__", None)
    is_path = isinstance(path, (list, tuple)) or type(path).__name__ == "_NamespacePath"
    return [folder for folder in path if isinstance(folder, str)] if path and is_path else []


def _sites(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Folders of installed packages on `sys.path` or with a file that was read, with the entries that were used."""
    used: dict[str, set[str]] = {site_of(f"{entry}{os.sep}"): set() for entry in map(absolute, _search_path())}
    for name in names:
        site = site_of(name)
        if site:
            used.setdefault(site, set()).add(name[len(site) + 1 :].partition(os.sep)[0])
    return {site: tuple(sorted(entries)) for site, entries in sorted(used.items()) if site}
