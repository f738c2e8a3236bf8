"""The node that makes an output differ, in words."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.wording import listing, source_place
from export_gate.wall.nodes import GuiltyNode, NodeTrace
from export_gate.wall.words import count, rounded

SHOWN_FILE_NODES = 3
ORIGIN = "wrong even when fed correct inputs: the error starts at this node"


def node_words(trace: NodeTrace | None) -> str:
    """One sentence: the node, where it is in the model, how far it is off, and how many nodes were compared."""
    if trace is None:
        return ""
    if trace.guilty is None:
        return (
            f"no single node: the error grows along the graph, each node adds no more than rounding{_compared(trace)}"
        )
    guilty = trace.guilty
    parts = [_name(guilty), _error(guilty), *_origin(trace, guilty)]
    return f"{'; '.join(filter(None, parts))}{_compared(trace)}"


def _name(guilty: GuiltyNode) -> str:
    kind = f" ({guilty.module_class})" if guilty.module_class else ""
    where = f" in `{guilty.module}`{kind}" if guilty.module else ""
    return f"`{guilty.name}`, `{guilty.operator}`{where}"


def _error(guilty: GuiltyNode) -> str:
    if guilty.words:
        return guilty.words
    if guilty.expected_at is not None and guilty.actual_at is not None:
        return f"{guilty.actual_at} instead of {guilty.expected_at}"
    if guilty.max_abs_diff is None:
        return ""
    return f"off by {rounded(guilty.max_abs_diff)} where values reach {rounded(guilty.expected_max_abs)}"


def _origin(trace: NodeTrace, guilty: GuiltyNode) -> Iterator[str]:
    yield "its inputs agree" if trace.origin == "untested" else ORIGIN
    if guilty.file_nodes:
        yield f"the file computes it with {listing(guilty.file_nodes, limit=SHOWN_FILE_NODES)}"
    if guilty.foreign is not None:
        yield f"called in {source_place(guilty.foreign)}"


def _compared(trace: NodeTrace) -> str:
    beside = "the exported program" if trace.beside == "program" else "eager"
    rest = f", {trace.unmapped} without a counterpart" if trace.unmapped else ""
    return f" ({count(trace.mapped, 'node')} compared with {beside}{rest})"
