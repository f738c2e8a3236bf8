"""Take a snapshot of a module's state, which can be compared and restored.

State is what Python objects hold: parameters, buffers and plain attributes (numbers, strings, containers, tensors,
arrays) of the module, its submodules and the project's own objects inside them. Objects of the standard library, torch
and NumPy are compared by identity.
"""

from __future__ import annotations

import hashlib
import types
from collections import deque
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from export_gate.worker.model.views import FOREIGN, ScriptAttributes, Variables

CLONED_PARAMETER = 1 << 16
"""Larger parameters are remembered by digest: a copy of all weights would double the memory."""
SAMPLES = 1 << 16
LONGEST = 10_000
"""Larger containers are compared by length."""

PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
_TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
# Every module's own bookkeeping; whether it is in train mode is state.
_INTERNAL = set(vars(torch.nn.Module())) - {"training"}
_NOT_WALKED = (type, types.ModuleType, types.FunctionType, types.MethodType)

Kind = Literal["identity", "plain", "tensor", "array", "list", "tuple", "set", "dict", "object"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One remembered value."""

    kind: Kind
    original: Any
    """The object itself: it is kept alive, and restored with its old content."""
    content: Any = None
    """The content of `original`: a copy, a digest, a length, or the State of each member."""


def snapshot_state(value: Any) -> State:
    """Remember the state of a module, or of a part of one, as it is now."""
    return _remember(value, set())


def restore_state(before: State) -> bool:
    """Restore everything; False if a large parameter changed, of which there is no copy."""
    known_digests: list[bool] = []
    _restore(before, known_digests)
    return all(known_digests)


def tensor_digest(tensor: torch.Tensor) -> str:
    """Digest of dtype, shape and values; of large tensors, only 65,536 evenly spread elements are used.

    Any changed run that is longer than the spacing (elements / 65,536) is detected.
    """
    digest = hashlib.blake2b(f"{tensor.dtype}{list(tensor.shape)}".encode(), digest_size=16)
    if is_readable(tensor):
        flat = tensor.detach().cpu().resolve_conj().resolve_neg().reshape(-1)
        sampled = flat[:: max(1, flat.numel() // SAMPLES)].contiguous()
        # As bytes: NumPy does not have all of torch's dtypes (bfloat16, float8).
        digest.update(sampled.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the values can be copied and compared: not for meta, sparse, quantized or uninitialized tensors."""
    is_dense = tensor.layout == torch.strided and not tensor.is_meta and not tensor.is_quantized
    return is_dense and type(tensor) in _TENSORS and not tensor.is_nested


def kind_of(value: Any) -> Kind:
    """How a value is remembered."""
    if isinstance(value, PLAIN):
        return "plain"
    if isinstance(value, torch.Tensor):
        return "tensor" if is_readable(value) else "identity"
    if isinstance(value, np.ndarray):
        return "identity" if value.dtype.hasobject else "array"
    # Containers before objects, because a subclass of dict has a `__dict__` as well.
    for kinds, name in ((dict, "dict"), ((list, deque), "list"), (tuple, "tuple"), (set, "set")):
        if isinstance(value, kinds):
            return name  # type: ignore[return-value] # mypy widens the names in the tuple to str
    root = type(value).__module__.partition(".")[0]
    is_own = isinstance(value, torch.nn.Module) or root not in FOREIGN
    return "object" if is_own and hasattr(value, "__dict__") and not isinstance(value, _NOT_WALKED) else "identity"


def _remember(value: Any, seen: set[int]) -> State:
    kind = kind_of(value)
    if kind not in ("plain", "identity") and id(value) in seen:
        return State(kind="identity", original=value)  # a second path to the same object, or a cycle
    # The State below keeps the value alive, so its id is not given to another object.
    seen.add(id(value))
    return State(kind=kind, original=value, content=_content(kind, value, seen))


def _content(kind: Kind, value: Any, seen: set[int]) -> Any:
    match kind:
        case "tensor":
            # Buffers are copied at any size: forward may write to them, and then they must be restored.
            is_large = isinstance(value, torch.nn.Parameter) and value.numel() > CLONED_PARAMETER
            return tensor_digest(value) if is_large else value.detach().clone()
        case "array" | "set":
            return value.copy()
        case "list" | "tuple" | "dict" if len(value) > LONGEST:
            return len(value)
        case "list" | "tuple":
            return [_remember(item, seen) for item in value]
        case "dict":
            return {key: _remember(item, seen) for key, item in value.items()}
        case "object":
            return [
                {key: _remember(namespace[key], seen) for key in state_keys(value, namespace)}
                for namespace in namespaces_of(value)
            ]
        case _:
            return None


def namespaces_of(value: Any) -> list[MutableMapping[str, Any]]:
    """The dicts that hold an object's attributes, or views of them; a module has four of them."""
    if isinstance(value, Variables):
        return [value]
    if isinstance(value, torch.jit.ScriptModule):
        return [ScriptAttributes(value)]
    if isinstance(value, torch.nn.Module):
        held: list[Any] = [vars(value), value._parameters, value._buffers, value._modules]  # noqa: SLF001 - no other way
        return held
    return [vars(value)]


def state_keys(value: Any, namespace: MutableMapping[str, Any]) -> list[str]:
    """The attributes in one of these dicts that are state, without hooks and other internals of modules."""
    is_module = isinstance(value, torch.nn.Module) and namespace is vars(value)
    return [key for key in namespace if not (is_module and key in _INTERNAL)]


def differing(old: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Where two tensors of one shape differ; NaN equals NaN."""
    old, now = old.cpu(), now.detach().cpu()
    return (old != now) & ~((old != old) & (now != now))  # noqa: PLR0124 - true for NaN alone, in every dtype


def is_equal(old: torch.Tensor, now: torch.Tensor) -> bool:
    """Same dtype, shape and values."""
    return old.dtype == now.dtype and old.shape == now.shape and not bool(differing(old, now).any())


def _restore(state: State, known: list[bool]) -> Any:
    """Restore the content of the original object, members first, and return it."""
    original, content = state.original, state.content
    match state.kind:
        case "tensor":
            known.append(_write(original, content))
        case "array":
            known.append(_write_array(original, content))
        case "set" if original != content:
            original.clear()
            original.update(content)
        case "tuple" if isinstance(content, list):
            # The tuple itself cannot have changed, but what it holds can.
            for member in content:
                _restore(member, known)
        case "list" if isinstance(content, list):
            members = [_restore(member, known) for member in content]
            original.clear()
            original.extend(members)
        case "dict" if isinstance(content, dict):
            _refill(original, list(original), content, known)
        case "object":
            for saved, namespace in zip(content, namespaces_of(original), strict=True):
                _refill(namespace, state_keys(original, namespace), saved, known)
    return original


def _write_array(original: npt.NDArray[Any], content: npt.NDArray[Any]) -> bool:
    """Restore changed values; False if that is not possible."""
    if original.shape == content.shape and original.tobytes() == content.tobytes():
        return True  # an unchanged array may be read-only, such as a view of a file
    try:
        np.copyto(original, content)
    except ValueError:
        return False
    return True


def _refill(
    namespace: MutableMapping[Any, Any], present: list[Any], saved: dict[Any, State], known: list[bool]
) -> None:
    for key in present:
        if key not in saved:
            del namespace[key]
    for key, state in saved.items():
        member = _restore(state, known)
        if key not in namespace or namespace[key] is not member:
            namespace[key] = member


def _write(tensor: torch.Tensor, content: torch.Tensor | str) -> bool:
    """Restore changed values; False if there is only a digest and it no longer matches."""
    if isinstance(content, str):
        return tensor_digest(tensor) == content
    if is_equal(content, tensor):
        return True
    if tensor.shape == content.shape and tensor.dtype == content.dtype:
        tensor.detach().copy_(content)  # in place, because other objects may share the tensor
    else:
        tensor.data = content.clone()
    return True
