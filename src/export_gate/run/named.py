"""List the files that a config names: a change to one of them changes what is verified."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from export_gate.config import Config
from export_gate.run.followed import way
from export_gate.wall.contract import DictSpec, ModelContract, SequenceSpec, Spec, TensorSpec
from export_gate.wall.inputs import parts
from export_gate.wall.repository import config_folder


def named_files(config: Config, root: Path) -> frozenset[str]:
    """Files and folders that models read, and where links of theirs lead, as paths from the root of the checkout."""
    folder = config_folder(config.path)
    names = (name for model in config.models for name in model_files(model, config.pythonpath))
    paths = (place for name in names for place in way(Path(os.path.normpath(folder / name)), root.resolve()))
    return frozenset(os.path.relpath(path, root.resolve()).replace(os.sep, "/") for path in paths)


def sources(config: Config, model: ModelContract) -> frozenset[Path]:
    """Where the file of the model's factory may be, without its ending and without links."""
    folder = config_folder(config.path)
    names = (name.removesuffix(".py") for name in _file(model.factory, config.pythonpath))
    # With the ending, since there may be a link of that name.
    return frozenset((folder / f"{name}.py").resolve().with_suffix("") for name in names)


def model_files(model: ModelContract, pythonpath: Sequence[str]) -> Iterator[str]:
    """What a model's contract names, from the config's folder: files, folders and texts that may name one."""
    yield from model.paths
    controls = model.controls
    yield from (target.artifact for target in model.targets if target.artifact is not None)
    yield from (source.path for source in controls.data)
    yield from (source.path for source in controls.golden)
    yield from _texts((*model.env.values(), model.kwargs))
    for reference in (model.factory, controls.function, controls.make, *_references(model.inputs.values())):
        if reference is not None:
            yield from _file(reference, pythonpath)


def _texts(value: object) -> Iterator[str]:
    """Every text of a value: what is passed to the factory may be the path of a checkpoint."""
    match value:
        case str() if value:
            yield value
        case dict() | list() | tuple():
            for item in value.values() if isinstance(value, dict) else value:
                yield from _texts(item)


def _references(specs: Iterable[Spec]) -> Iterator[str | None]:
    """The functions that make inputs."""
    for spec in specs:
        match spec:
            case TensorSpec():
                yield spec.make
            case SequenceSpec() | DictSpec():
                yield spec.build
        yield from _references(parts(spec).values())


def _file(reference: str, pythonpath: Sequence[str]) -> Iterator[str]:
    """The file of `path/to/file.py:attribute`, or where that of `module.inner:attribute` may be."""
    place = reference.rpartition(":")[0]
    if place.endswith(".py"):
        yield place
    else:
        # Without an ending: it may be a module, a compiled one or a package, and need not be there.
        yield from (f"{entry}/{place.replace('.', '/')}" for entry in pythonpath)
