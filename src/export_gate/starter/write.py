"""`export-gate init`: write a first config for a factory, from the worker's description of the model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Template

from export_gate.config import Config, load_config
from export_gate.config.names import NAME, OUTPUT_NAME
from export_gate.config.paths import default_pythonpath
from export_gate.report.render import environment
from export_gate.run.ask import ask
from export_gate.run.order import Order
from export_gate.starter.extend import extended
from export_gate.starter.names import beside, check_reference, model_name, needed_pythonpath
from export_gate.starter.text import comment, flow, found_text, left_out_text, spec_text
from export_gate.wall.codec import decode
from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.description import Description, Found
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root
from export_gate.wall.request import Describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a starter config is wanted for."""

    factories: tuple[str, ...]
    kwargs: dict[str, object] = field(default_factory=dict)
    """Keyword arguments of each factory."""
    artifact: str | None = None
    """An ONNX file to verify, which also says what the inputs are; then there is one factory."""
    name: str = ""
    """Of the one model, if its factory does not say one."""
    is_fresh: bool = False
    """Whether to replace a config that exists instead of extending it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """The parts of a model's lines that are not in its description."""

    name: str
    factory: str
    kwargs: dict[str, object]
    trial: tuple[str, ...]
    """Comment lines about the inputs that were tested."""
    outputs: tuple[Found, ...]
    declares_outputs: bool = False
    """Whether they are declared, so that an output that the model drops is a violation; else only suggested."""
    artifact: str | None = None
    """Relative to the config."""


def starter_config(wish: Wish, output: Path, order: Order) -> str:
    """Return the text of a valid config for the factories; it runs if the test of their inputs succeeded.

    Raises:
        UserError: a factory cannot be imported or called, its model's inputs cannot be declared, or the config that
            exists cannot be extended.
    """
    for factory in wish.factories:
        check_reference(factory)
    folder = Path(os.path.abspath(output)).parent  # noqa: PTH100 - as load_config: a linked folder stays itself
    if not folder.is_dir():
        raise UserError(f"{output}: the folder {folder} does not exist", "create it, or name another file with `-c`")
    check_place(wish.artifact, folder)
    # Validated first: what is added to a broken config would be blamed for it.
    old = load_config(output) if output.exists() and not wish.is_fresh else None
    pythonpath = tuple(dict.fromkeys(entry for name in wish.factories for entry in needed_pythonpath(name, folder)))
    jobs = make_jobs(wish, folder, old, pythonpath)
    further = "\n".join(
        model_text(job, description, wish.artifact) for job, description in describe(jobs, wish, old, folder, order)
    )
    if old is None:
        relative = tuple(Path(os.path.relpath(entry, folder)).as_posix() for entry in pythonpath)
        text = render_config(further, relative)
    else:
        # Not read_text, which changes the line ends.
        text = extended(output.read_bytes().decode("utf-8"), further, str(output))
    check_text(text, output, folder)
    return text


def check_place(artifact: str | None, folder: Path) -> None:
    """Check that a config in the folder can name the file.

    Raises:
        UserError: it is not in the repository.
    """
    root = repository_root(folder)
    if artifact is not None and root not in Path(os.path.abspath(artifact)).parents:  # noqa: PTH100 - as load_config
        raise UserError(
            f"--artifact {artifact}: expected a file in {root}",
            "copy or link it there: a config names files by their path in it",
        )


def make_jobs(wish: Wish, folder: Path, old: Config | None, pythonpath: tuple[str, ...]) -> tuple[Job, ...]:
    """One job for each factory, under a name that no other model has.

    Raises:
        UserError: the config has a model of such a factory already.
    """
    taken = {contract.name for contract in old.models} if old else set()
    jobs = []
    for reference in wish.factories:
        factory = beside(reference, folder)
        same = [c.name for c in old.models if (c.factory, c.kwargs) == (factory, wish.kwargs)] if old else []
        if same:
            raise UserError(
                f"{old.path if old else ''}: the model `{same[0]}` has the factory {factory} already",
                "edit that model, or use --force to write the file anew",
            )
        name = model_name(f"{wish.name}:" if wish.name else factory, taken)
        taken.add(name)
        # Inputs are what the worker is asked to guess.
        contract = ModelContract(name=name, factory=factory, kwargs=wish.kwargs, inputs={}, targets=())
        paths = old.pythonpath if old else pythonpath or default_pythonpath(folder)
        jobs.append(Job(contract=contract, base=str(folder), pythonpath=paths, artifacts=""))
    return tuple(jobs)


def describe(
    jobs: tuple[Job, ...], wish: Wish, old: Config | None, folder: Path, order: Order
) -> Iterator[tuple[Job, Description]]:
    """The worker's description of each factory's model.

    Raises:
        UserError: a factory cannot be imported or called.
    """
    artifact = None if wish.artifact is None else str(Path(wish.artifact).absolute())
    observed = ask(jobs, Describe(artifact=artifact), old.python if old else None, folder, order)
    for job, answer in zip(jobs, observed.answers, strict=True):
        yield job, decode(Description, answer)


def model_text(job: Job, model: Description, artifact: str | None) -> str:
    """The lines of one model."""
    check_names(model)
    starter = Starter(
        name=job.contract.name,
        factory=job.contract.factory,
        kwargs=job.contract.kwargs,
        trial=trial_lines(model),
        outputs=tuple(found for found in model.outputs if can_declare(found)),
        declares_outputs=model.verdict == "works" and all(map(can_declare, model.outputs)),
        artifact=None if artifact is None else Path(os.path.relpath(artifact, job.base)).as_posix(),
    )
    return render_starter(starter, model)


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
    """One model's lines, indented by two."""
    return _template("starter_model.yml.j2").render(starter=starter, model=model)


def render_config(models: str, pythonpath: Sequence[str] = ()) -> str:
    """A config of these models; the folders are relative to it."""
    return _template("starter.yml.j2").render(pythonpath=tuple(pythonpath), models=models)


def _template(name: str) -> Template:
    jinja = environment()
    jinja.filters.update(yaml=flow, note=comment, spec=spec_text, found=found_text, left_out=left_out_text)
    return jinja.get_template(name)


def check_text(text: str, output: Path, folder: Path) -> None:
    """Load the text as a config, from a file next to the output, because paths are relative to it.

    Raises:
        UserError: the folder cannot be written, or the text does not fit the config that exists.
        RuntimeError: the text is not a valid config, which is a bug in export-gate.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".export-gate-", dir=folder) as scratch:
            # The folder only reserves a free name: the file must lie where the output will, as its paths are relative.
            path = Path(scratch).with_suffix(".yml")
            path.write_text(text, encoding="utf-8")
            try:
                load_config(path)
            finally:
                path.unlink()
    except UserError as error:
        if output.exists():
            raise UserError(
                f"{output}: with the further models, the config would not be valid: {error}",
                "what it says under `defaults` may not fit them: name another file with -c",
            ) from error
        raise RuntimeError(f"the starter config is not valid: {error}\n{text}") from error
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror or error}") from error
