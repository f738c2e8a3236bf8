"""Describe a model: forward's parameters, and inputs that were guessed and tested."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from export_gate.wall.codec import encode
from export_gate.wall.contract import ConstantSpec, Dim, Job, Spec
from export_gate.wall.description import Description, Guess, LeftOut
from export_gate.wall.errors import UserError
from export_gate.wall.protocol import Event
from export_gate.wall.request import Describe
from export_gate.worker.guess.artifact import Interface, in_its_words, options_of, read_interface
from export_gate.worker.guess.bench import Bench, in_order, make_bench, make_dims
from export_gate.worker.guess.edits import dims_of, leaves_of, with_known_bounds
from export_gate.worker.guess.exporting import try_export
from export_gate.worker.guess.layers import Option
from export_gate.worker.guess.names import constant_for
from export_gate.worker.guess.options import combinations, options_for, suggested
from export_gate.worker.guess.pixels import as_stored
from export_gate.worker.guess.tryout import Trial, sentence_of, try_out
from export_gate.worker.model.called import Called
from export_gate.worker.model.factory import (
    forward_parameters,
    is_scripted,
    load_attribute,
    load_factory,
    require_factory,
)
from export_gate.worker.model.hygiene import training_modules
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.stages import at_desk

Signature = tuple[inspect.Parameter, ...]
PLAIN = (bool, int, float, str, type(None))
STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
DEFAULT_CHARACTERS = 60
OPTIONAL_GUESSES = 2
DECODER_IDS = "decoder_input_ids"


def describe_forward(task: Describe, job: Job, channel: Channel) -> None:
    """Send the description of the job's model; only the factory of its contract and its arguments count."""
    with at_desk(job, channel) as desk, desk.stage("model"):
        interface = read_interface(Path(task.artifact)) if task.artifact else None
        description = _describe(load_module(job, takes_callables=interface is not None), interface)
        channel.send(Event(op="answer", model=job.contract.name, value=encode(description)))


def load_module(job: Job, *, takes_callables: bool = False) -> torch.nn.Module:
    """What the factory makes with the contract's arguments; TorchScript and callables as references of files.

    Args:
        job: the model's.
        takes_callables: whether a file is to be verified, so that any callable can be its reference.

    Raises:
        UserError: it needs further arguments, or it is or makes something that cannot be a reference.
    """
    reference = job.contract.factory
    made = load_attribute(reference, Path(job.base), "factory")
    require_factory(made, reference)
    missing = [name for name in _required(made) if name not in job.contract.kwargs]
    if missing:
        raise UserError(
            f"factory {reference!r} needs arguments: its parameters are {inspect.signature(made)}",
            f"pass them with `{' '.join(f'--kwargs {name}=...' for name in missing)}`, or name a function that needs "
            f"none, such as `def make_model(): return {made.__name__}({', '.join(f'{name}=...' for name in missing)})`",
        )
    factory = load_factory(job.contract, Path(job.base))
    module = replace(factory, takes_callables=True)()
    if isinstance(module, Called) and not (module.is_scripted or takes_callables):
        return factory()  # which refuses it: a function is more likely a mistake than a reference of unnamed files
    return module


def is_exportable(module: torch.nn.Module) -> bool:
    """Whether torch.export may take it."""
    return not isinstance(module, Called) and not is_scripted(module)


def _required(made: Any) -> list[str]:
    """Parameters without a default; none if there is no signature."""
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in STARS]


def _describe(module: torch.nn.Module, interface: Interface | None = None) -> Description:
    # Before `eval`, because the starter config has to say what the factory returns.
    training = training_modules(module)[1]
    module.eval()
    signature = tuple(inspect.signature(module.forward).parameters.values())
    declared = declared_parameters(module, signature)
    if not declared:
        raise UserError(
            f"{type(module).__name__}.{spelled_signature(signature)} names no parameter: init cannot tell its inputs",
            "write the config by hand; docs/config.md begins with a small one",
        )
    constants = constant_arguments(module, signature)
    bench = make_bench(module, forward_parameters(module), constants, partial(offered_parameter, signature, module))
    if interface is None:
        names = [p.name for p in declared]
        candidates = combinations([options_for(p, module) for p in declared])
        tried = try_out(bench, [dict(zip(names, options, strict=True)) for options in candidates])
        trial = try_export(bench, as_stored(bench, tried)) if is_exportable(module) else tried
    else:
        trial = try_file(bench, interface, signature)
    description = _description(module, signature, trial, constants)
    description = description if interface is None else in_its_words(description, interface)
    return replace(description, training=training, is_exportable=is_exportable(module))


def try_file(bench: Bench, interface: Interface, signature: Signature) -> Trial:
    """How forward takes what the file takes; nothing but ranges may be mended."""
    tensors = [p for p in signature if p.kind not in STARS and constant_for(p.annotation) is None]
    guesses = {p.name: suggested(p.name, bench.module) for p in tensors}
    options = with_known_bounds(options_of(interface, [p.name for p in tensors], guesses))
    trial = try_out(bench, [options])
    # A guess that was mended to other tensors is not what the file takes.
    if [(spec.dtype, spec.shape) for spec in leaves_of(trial.options).values()] == [
        (spec.dtype, spec.shape) for spec in leaves_of(options).values()
    ]:
        return trial
    failed = bench.problem(options)
    problem = sentence_of(failed[0]) if failed else "it does not take other sizes than those that were tried first"
    return Trial(options=options, dims=make_dims(options), works=False, tried=1, problem=problem)


def _description(
    module: torch.nn.Module, signature: Signature, trial: Trial, constants: dict[str, Spec]
) -> Description:
    guesses = _guesses(trial, constants, module)
    return Description(
        signature=spelled_signature(signature),
        inputs=guesses,
        left_out=tuple(
            _left_out(p, module, trial.dims) for p in signature if p.name not in {guess.name for guess in guesses}
        ),
        dims=trial.dims,
        verdict="works" if trial.works else "fails",
        tried=trial.tried,
        sizes=tuple(f"{name} {', '.join(map(str, sizes))}" for name, sizes in trial.sizes.items()),
        problem=trial.problem,
        notes=trial.notes,
        outputs=trial.outputs,
    )


def declared_parameters(module: torch.nn.Module, signature: Signature) -> Signature:
    """The parameters that need a value; where all have defaults, the main one, and the decoder's if there is one."""
    named = tuple(p for p in signature if p.kind not in STARS)
    required = tuple(p for p in named if p.default is p.empty)
    main = getattr(module, "main_input_name", None)
    first = required or tuple(p for p in named if p.name == main) or named[:1]
    has_decoder = getattr(getattr(module, "config", None), "is_encoder_decoder", False) is True
    return first + tuple(p for p in named if has_decoder and p.name == DECODER_IDS and p not in first)


def offered_parameter(signature: Signature, module: torch.nn.Module, name: str) -> Option | None:
    """How to feed a parameter whose default is None; nothing for others, and for the other form of a main input."""
    found = next((p for p in signature if p.name == name and p.kind not in STARS and p.default is None), None)
    if found is None or name.endswith("inputs_embeds"):
        return None
    return options_for(found, module)[0]


def constant_arguments(module: torch.nn.Module, signature: Signature) -> dict[str, Spec]:
    """`use_cache: false` for Hugging Face decoders: a cache cannot be compared."""
    config = getattr(module, "config", None)
    has_decoder = getattr(config, "is_decoder", True) or getattr(config, "is_encoder_decoder", False)
    is_on = getattr(config, "use_cache", False) and has_decoder
    return {p.name: ConstantSpec(value=False) for p in signature if p.name == "use_cache" and is_on}


def _guesses(trial: Trial, constants: dict[str, Spec], module: torch.nn.Module) -> tuple[Guess, ...]:
    found = trial.options
    specs = in_order({**{n: option.spec for n, option in found.items()}, **constants}, forward_parameters(module))
    return tuple(
        Guess(name=name, spec=spec, reason=found[name].reason if name in found else "a cache cannot be compared")
        for name, spec in specs.items()
    )


def _left_out(parameter: inspect.Parameter, module: torch.nn.Module, dims: Sequence[Dim]) -> LeftOut:
    is_star = parameter.kind in STARS
    default = "" if is_star else repr(parameter.default)
    return LeftOut(
        name=parameter.name,
        kind=parameter.kind.name.lower(),  # type: ignore[arg-type] # the enum has these five
        default=default if len(default) <= DEFAULT_CHARACTERS else f"{default[:DEFAULT_CHARACTERS]}...",
        spec=None if is_star else _optional_spec(parameter, module, dims),
    )


def _optional_spec(parameter: inspect.Parameter, module: torch.nn.Module, dims: Sequence[Dim]) -> Spec | None:
    """What would declare the parameter; None if that takes a dim which the other inputs do not have."""
    if parameter.default is not None and isinstance(parameter.default, PLAIN):
        return ConstantSpec(value=parameter.default)
    constant = constant_for(parameter.annotation)
    specs = [constant] if constant else [option.spec for option in suggested(parameter.name, module)[:OPTIONAL_GUESSES]]
    known = {dim.name for dim in dims}
    return next((spec for spec in specs if known.issuperset(dims_of({parameter.name: spec}))), None)


def spelled_signature(signature: Sequence[inspect.Parameter]) -> str:
    """`forward(x, *, mask=None)`, without annotations."""
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature]
    return f"forward{inspect.Signature(bare)}"
