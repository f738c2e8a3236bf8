"""`export-gate init`: write a first config for a factory, from the worker's description of the model."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from export_gate.config import load_config
from export_gate.config.paths import ATTRIBUTE, default_pythonpath, repository_root
from export_gate.config.tensors import NAME, OUTPUT_NAME
from export_gate.report.escape import one_line
from export_gate.report.render import environment
from export_gate.run.ask import ask
from export_gate.run.order import Order
from export_gate.starter.text import comment, flow, found_text, left_out_text, spec_text
from export_gate.wall.codec import decode
from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.description import Description, Found
from export_gate.wall.errors import UserError
from export_gate.wall.request import Describe

GENERIC = frozenset({"model", "models", "net", "module", "main", "factory", "make", "create", "build", "get", "init"})
"""Generic names, which do not identify the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """The parts of a starter config that are not in the description."""

    name: str
    factory: str
    pythonpath: tuple[str, ...]
    """Folders relative to the config; empty if the default is enough."""
    trial: tuple[str, ...]
    """Comment lines about the inputs that were tested."""
    outputs: tuple[Found, ...]
    declares_outputs: bool = False
    """Whether they are declared, so that an output that the model drops is a violation; else only suggested."""


def starter_config(factory: str, output: Path, order: Order) -> str:
    """Return the text of a valid config for the factory; it runs if the test of its inputs succeeded.

    Raises:
        UserError: the factory cannot be imported or called, or the model's inputs cannot be declared.
    """
    check_reference(factory)
    folder = Path(os.path.abspath(output)).parent  # noqa: PTH100 - as load_config: a linked folder stays itself
    if not folder.is_dir():
        raise UserError(f"{output}: the folder {folder} does not exist", "create it, or name another file with `-o`")
    factory = beside(factory, folder)
    pythonpath = needed_pythonpath(factory, folder)
    name = model_name(factory)
    model = describe(name, factory, folder, pythonpath, order)
    check_names(model)
    starter = Starter(
        name=name,
        factory=factory,
        pythonpath=tuple(Path(os.path.relpath(entry, folder)).as_posix() for entry in pythonpath),
        trial=trial_lines(model),
        outputs=tuple(found for found in model.outputs if can_declare(found)),
        declares_outputs=model.verdict == "works" and all(map(can_declare, model.outputs)),
    )
    text = render_starter(starter, model)
    check_text(text, output, folder)
    return text


def describe(name: str, factory: str, folder: Path, pythonpath: tuple[str, ...], order: Order) -> Description:
    """Return the worker's description of the factory's model.

    Raises:
        UserError: the factory cannot be imported or called.
    """
    job = Job(
        contract=ModelContract(name=name, factory=factory, inputs={}, targets=()),
        base=str(folder),
        pythonpath=pythonpath or default_pythonpath(folder),
        artifacts="",
    )
    observed = ask(job, Describe(), None, folder, order)
    return decode(Description, observed.answers[0])


def check_reference(factory: str) -> None:
    """Check that the text can name a factory.

    Raises:
        UserError: it is not `module:attribute`.
    """
    if ATTRIBUTE.matches(factory):
        return
    place = factory.partition(":")[0] or "package.module"
    raise UserError(
        f"factory {factory!r}: expected {ATTRIBUTE.expected}",
        f"name the function or class that creates the model, such as `{one_line(place)}:make_model`",
    )


def beside(factory: str, folder: Path) -> str:
    """The factory as the config names it: the path of a file becomes relative to the config's folder."""
    place, _, attribute = factory.rpartition(":")
    if not place.endswith(".py") or (folder / place).is_file() or not Path(place).is_file():
        return factory
    return f"{Path(os.path.relpath(place, folder)).as_posix()}:{attribute}"


def needed_pythonpath(factory: str, folder: Path) -> tuple[str, ...]:
    """Folders to declare as `pythonpath`; empty if the default or an installed package has the factory."""
    place = factory.rpartition(":")[0]
    if place.endswith(".py"):
        return ()
    root, here = repository_root(folder), Path.cwd()
    if any(_has(Path(entry), place) for entry in default_pythonpath(folder)):
        return ()
    inside = [up for up in (here, here / "src", root, root / "src") if up == root or root in up.parents]
    return next(((str(entry),) for entry in inside if _has(entry, place)), ())


def _has(folder: Path, module: str) -> bool:
    """Whether the folder contains the module's source."""
    path = folder.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def model_name(factory: str) -> str:
    """A short name: the first of attribute, module and package that is not generic."""
    place, _, attribute = factory.rpartition(":")
    parts = [*Path(place).with_suffix("").parts] if place.endswith(".py") else place.split(".")
    candidates = [kebab(part) for part in (attribute.rpartition(".")[2], *reversed(parts))]
    return next((name for name in candidates if name and name not in GENERIC), "model")


def kebab(identifier: str) -> str:
    """`make_glyph_head` and `GlyphHead` as `glyph-head`."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", identifier)
    while len(words) > 1 and words[0].lower() in {"make", "create", "build", "get", "load", "new"}:
        words = words[1:]
    return "-".join(word.lower() for word in words)[:100]


def check_names(model: Description) -> None:
    """Check that the inputs can be keys of a config.

    Raises:
        UserError: one of them is not an ASCII identifier.
    """
    for guess in model.inputs:
        if not NAME.matches(guess.name):
            raise UserError(
                f"parameter {guess.name!r} of {model.signature}: expected a name of ASCII letters, digits and '_'",
                "rename the parameter: exported artifacts name their inputs after it",
            )


def trial_lines(model: Description) -> tuple[str, ...]:
    """The inputs that were tested, and what to do next."""
    if model.verdict == "works":
        at = f" at {' and '.join(model.sizes)}" if model.sizes else ""
        lines = [
            f"These inputs were tested: forward runs{at}.",
            "Ranges are guesses: replace them with those of your data.",
        ]
        broken = [found.name for found in model.outputs if found.nonfinite]
        if broken:
            lines.append(f"NaN or infinity was returned in {', '.join(broken)}: is a range too wide?")
        return (*lines, *model.notes)
    count = "1 guess was" if model.tried == 1 else f"{model.tried} guesses were"
    return (
        f"CORRECT THESE INPUTS: {count} tested and forward accepted none; the first one raised",
        model.problem,
    )


def can_declare(found: Found) -> bool:
    """Whether the output can be declared under `outputs`."""
    return OUTPUT_NAME.matches(found.name)


def render_starter(starter: Starter, model: Description) -> str:
    """The config's text."""
    jinja = environment()
    jinja.filters.update(yaml=flow, note=comment, spec=spec_text, found=found_text, left_out=left_out_text)
    return jinja.get_template("starter.yml.j2").render(starter=starter, model=model)


def check_text(text: str, output: Path, folder: Path) -> None:
    """Load the text as a config, from a file next to the output, because paths are relative to it.

    Raises:
        UserError: the folder cannot be written.
        RuntimeError: the text is not a valid config, which is a bug in export-gate.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".export-gate-", dir=folder) as scratch:
            path = Path(scratch).with_suffix(".yml")
            path.write_text(text, encoding="utf-8")
            try:
                load_config(path)
            finally:
                path.unlink()
    except UserError as error:
        raise RuntimeError(f"the starter config is not valid: {error}\n{text}") from error
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror or error}") from error
