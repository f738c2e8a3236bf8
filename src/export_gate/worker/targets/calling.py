"""Turn a call of the reference into the call that a file's program takes, by name or position as it was exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from export_gate.wall.contract import ModelContract
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.reference import Runner


def as_exported(run: Runner, program: Any, contract: ModelContract) -> Runner:
    """Run a program whose parameters may be of another kind than those of the contract's reference."""
    signature = program.module_call_graph[0].signature
    # The structure of a call is that of the pair (args, kwargs); the context of a dict is its keys.
    args, kwargs = signature.in_spec.children()
    keywords = tuple(kwargs.context)
    names = signature.forward_arg_names or [str(place) for place in range(args.num_children)]  # None in older files
    positions = tuple(names[: args.num_children])
    declared = tuple(getattr(spec, "name", None) or name for name, spec in contract.inputs.items())

    def fitting(call: Call) -> Call:
        if len(call.args) == args.num_children and set(call.kwargs) == set(keywords):
            return call
        return rebound(call, declared, positions, keywords)

    return lambda call: run(fitting(call))


def rebound(call: Call, declared: Sequence[str], positions: Sequence[str], keywords: Sequence[str]) -> Call:
    """The call's values where the program takes them; the call itself if they do not fit, which the program reports.

    Args:
        call: the reference's; its values are in the contract's order.
        declared: the contract's names for the program's inputs.
        positions: names of what the program takes by position.
        keywords: names of what it takes by name.
    """
    values = (*call.args, *call.kwargs.values())
    taken = (*positions, *keywords)
    # By name if the program has the contract's names, else by order.
    if len(values) == len(declared) and set(taken) <= set(declared):
        named = dict(zip(declared, values, strict=True))
    elif len(values) == len(taken):
        named = dict(zip(taken, values, strict=True))
    else:
        return call
    return Call(args=tuple(named[name] for name in positions), kwargs={name: named[name] for name in keywords})
