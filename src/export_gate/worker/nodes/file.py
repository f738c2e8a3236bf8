"""An ONNX file's graph: what its values come from, its intermediate values at one input, and parts of it run alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.worker.onnx_file.session import open_session
from export_gate.worker.onnx_file.tensors import ELEMENT_TYPES, graph_inputs

Array = npt.NDArray[Any]
FX_NODE = re.compile(r"%(\w+) :")
"""How torch's exporter writes the node (torch 2.13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The file's nodes between values that have a counterpart and one that is looked at."""

    nodes: tuple[int, ...]
    """Their places in the graph, the earliest first."""
    given: tuple[str, ...]
    """The nearest values before it that have a counterpart, and the graph's inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGraph:
    """The file's graph, with large weights left in their own file."""

    model: Any
    path: Path
    producers: Mapping[str, int]
    """Value -> place of its node."""

    @classmethod
    def read(cls, path: Path) -> FileGraph:
        """Raises what onnx raises."""
        import onnx

        model = onnx.load(str(path), load_external_data=False)
        nodes = enumerate(model.graph.node)
        return cls(model=model, path=path, producers={name: at for at, node in nodes for name in node.output if name})

    @property
    def inputs(self) -> set[str]:
        """The graph's inputs."""
        return {value.name for value in graph_inputs(self.model)}

    @property
    def outputs(self) -> tuple[str, ...]:
        """The graph's outputs, in order."""
        return tuple(value.name for value in self.model.graph.output)

    def part(self, value: str, mapped: Collection[str]) -> Part:
        """The part that computes the value from the nearest mapped values before it."""
        inputs = self.inputs
        nodes: set[int] = set()
        given: dict[str, None] = {}
        waiting = [self.producers[value]]
        while waiting:
            at = waiting.pop()
            if at in nodes:
                continue
            nodes.add(at)
            for name in reads(self.model.graph.node[at]):
                if name in inputs or (name in mapped and name != value):
                    given[name] = None
                elif name in self.producers:
                    waiting.append(self.producers[name])
        return Part(nodes=tuple(sorted(nodes)), given=tuple(given))

    def label(self, at: int) -> str:
        """`MatMul node_MatMul_2`."""
        node = self.model.graph.node[at]
        return f"{node.op_type} {node.name}".strip()

    def origins(self, places: Sequence[int]) -> tuple[str, ...]:
        """The program's nodes that the converter made these nodes of, as it notes them in their metadata."""
        props = [{entry.key: entry.value for entry in self.model.graph.node[at].metadata_props} for at in places]
        found = [FX_NODE.match(entries.get("pkg.torch.onnx.fx_node", "")) for entries in props]
        return tuple(dict.fromkeys("" if name is None else name[1] for name in found))

    def tapped(self, values: Sequence[str], providers: Sequence[str], optimization: str) -> Any:
        """A session that also returns these values, whose types ONNX Runtime infers."""
        copy = self._copy()
        known = set(self.outputs)
        for name in values:
            if name not in known:
                copy.graph.output.add().name = name
        return open_session(self.path, providers, optimization, serialized=copy.SerializeToString())

    def alone(self, part: Part, value: str, given: Mapping[str, Array], providers: Sequence[str]) -> Any:
        """A session over one part, which takes these arrays for what comes before it."""
        import onnx

        copy = self._copy()
        graph = self.model.graph
        kept = [graph.node[at] for at in part.nodes]
        read = {name for node in kept for name in reads(node)}
        del copy.graph.node[:], copy.graph.input[:], copy.graph.output[:], copy.graph.initializer[:]
        del copy.graph.value_info[:]
        copy.graph.node.extend(kept)
        copy.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name in read)
        for name, array in given.items():
            kind = ELEMENT_TYPES[str(array.dtype)]
            copy.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
        copy.graph.output.add().name = value
        return open_session(self.path, providers, "disable", serialized=copy.SerializeToString())

    def _copy(self) -> Any:
        import onnx

        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        return copy


def fetch(session: Any, names: Sequence[str], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """These values, of which only what leads to them is computed; none for those that are not tensors."""
    import onnxruntime

    if not names:
        return {}  # for no names ONNX Runtime returns all
    options = onnxruntime.RunOptions()
    options.only_execute_path_to_fetches = True
    accepted = {value.name for value in session.get_inputs()}
    own = {name: array for name, array in feeds.items() if name in accepted}
    found = session.run(list(names), own, options)
    return {name: value for name, value in zip(names, found, strict=True) if isinstance(value, np.ndarray)}


def reads(node: Any) -> Iterator[str]:
    """The values that a node reads, by subgraphs too."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            # A subgraph reads values of the graph around it by their names.
            inner = {name for other in graph.node for name in other.output} | {value.name for value in graph.input}
            yield from (name for other in graph.node for name in reads(other) if name not in inner)
            yield from (value.name for value in graph.output if value.name not in inner)


def parents(graph: FileGraph, mapped: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The nearest mapped values before each mapped value."""
    wanted = set(mapped)
    return {value: tuple(n for n in graph.part(value, wanted).given if n in wanted) for value in wanted}
