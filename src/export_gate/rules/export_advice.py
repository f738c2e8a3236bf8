"""Turn torch.export's error message into advice on what to change in the model or in `export-gate.yml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from export_gate.rules.branch_advice import CONDITION
from export_gate.rules.python_numbers import constant_advice, counted
from export_gate.rules.trial_advice import trial_advice
from export_gate.rules.value_sizes import value_size_advice
from export_gate.rules.wording import at_source, listing, plain, source_place
from export_gate.wall.contract import Dim, ModelContract
from export_gate.wall.diagnosis import ExportGuard, ExportTrial
from export_gate.wall.observation import UNWRITTEN_SIZES, Failure
from export_gate.wall.source import SourceLine

DATA_DEPENDENT = re.compile(r"data-dependent|GuardOnDataDependentSymNode|torch\.cond|[Dd]ynamic control flow")
SPECIALIZED = re.compile(r"You marked (\w+) as dynamic but your code specialized it to be a constant \((\d+)\)")
REFUSED_SIZES = re.compile(rf"Constraints violated|ConstraintViolationError|{UNWRITTEN_SIZES}|{SPECIALIZED.pattern}")
UNKNOWN_TYPE = re.compile(r"Found <class '([^']+)'> in (output|input), which is not a known type")

FORMATTED = re.compile(r"passed to (?:FakeTensor|FunctionalTensor|Tensor)\.__format__")
"""What Python says of `f"{x.max():.3f}"` while torch.export traces."""

PACKED = re.compile(r"_pack_padded_sequence|argument 'size' failed to unpack")
"""What torch.export says about packed sequences (torch 2.13)."""

UNKNOWN_OPERATOR = re.compile(r"UnsupportedOperatorException: ([\w.:]+)")
TAKEN_NAME = re.compile(r"SympifyError: (?!SympifyError)(\w+)")

CONSTANT = re.compile(r"^(\w+) = (\d+)$")
MULTIPLE = re.compile(r"^(\w+) = (\d+)\*(\w+)$")
BOUNDS = re.compile(r"^(\w+) = Dim\(['\"]\w+['\"](?:, min=(\d+))?(?:, max=(\d+))?\)$")
SAME = re.compile(r"^(\w+) = ([A-Za-z]\w*)$")
DERIVED = re.compile(r"^(\w+) = ([^=]*[+*-][^=]*)$")


def export_advice(
    contract: ModelContract,
    failure: Failure,
    recurrent: Mapping[str, str] = MappingProxyType({}),
    trials: Sequence[ExportTrial] = (),
    guard: ExportGuard | None = None,
) -> str:
    """The next step for the kinds of message that torch is known to raise.

    Args:
        contract: what is declared.
        failure: of torch.export.
        recurrent: layers that take a step for each position -> the dim of their length, or `packed`.
        trials: other declarations that were exported.
        guard: the condition on sizes because of which torch.export refused them.
    """
    text = _text(failure)
    # Before the constraints: an unrolled length shows as a specialised dim too, but needs other advice.
    unrolled = unrolled_layers(contract, failure, recurrent)
    if unrolled:
        return _recurrent_advice(contract, unrolled, is_packed=is_packed(failure))
    if REFUSED_SIZES.search(text):
        # What was tried and works is better advice than what torch suggests.
        foreign = guard.foreign if guard else None
        return trial_advice(contract, failure, trials, guard) or _constraint_advice(contract, failure, text, foreign)
    if DATA_DEPENDENT.search(text):
        return _data_dependent_advice(failure, text)
    unknown = UNKNOWN_TYPE.search(text)
    if unknown:
        name = unknown.group(1).rsplit(".", 1)[-1]
        return (
            f"Return a tensor, or a tuple, list or dict of tensors, instead of {name}; or register the class in the "
            f'module that defines it: `torch.export.register_dataclass({name}, serialized_type_name="{name}")` for a '
            f"dataclass, `torch.utils._pytree.register_pytree_node({name}, ...)` for any other class. pt2 files need "
            "the `serialized_type_name`, which may be any text of your own."
        )
    if ".numpy() is not supported" in text:
        return f"Write the NumPy code{_at(failure)} with torch operators: torch.export cannot trace outside torch."
    if FORMATTED.search(text):
        return (
            f"A tensor is written into a text{_at(failure)}, for which its values are needed: take the text out of "
            "forward, or write only shapes and dtypes into it."
        )
    unknown_operator = UNKNOWN_OPERATOR.search(text)
    if unknown_operator:
        return (
            f"torch.export cannot trace `{unknown_operator[1]}`, of which it does not know what it returns: write the "
            f"line{_at(failure)} with other operators, or, for an operator of your own, register a fake "
            "(`torch.library.register_fake`)."
        )
    taken = TAKEN_NAME.search(text)
    if taken:
        return (
            f"Give dim '{taken.group(1)}' another name under `models.{contract.name}.dims`: torch parses dim names as "
            "formulas, and sympy reserves some names (S, N, I, E, Q, O, C, pi)."
        )
    return (
        f"Change the model so that torch.export can capture it{_at(failure)}; the traceback is in the details. To see "
        "all obstacles at once, call `torch.export.draft_export` instead."
    )


def unrolled_layers(contract: ModelContract, failure: Failure, recurrent: Mapping[str, str]) -> list[str]:
    """The recurrent layers, of those with the dim of their length, whose length torch.export could not keep dynamic."""
    text = _text(failure)
    constants = {match.group(1) for line in failure.suggestions if (match := CONSTANT.match(line.strip()))}
    constants.update(name for name, _ in SPECIALIZED.findall(text))
    dims = {_name(contract, name) for name in constants}
    packs = is_packed(failure)
    return [layer for layer, dim in recurrent.items() if (packs if dim == "packed" else dim in dims)]


def is_packed(failure: Failure) -> bool:
    """Whether torch.export stumbled over packed sequences."""
    return PACKED.search(_text(failure)) is not None


def _text(failure: Failure) -> str:
    return f"{failure.type}: {plain(failure.message)}"


def _recurrent_advice(contract: ModelContract, layers: Sequence[str], *, is_packed: bool) -> str:
    """An LSTM, GRU or RNN with a dynamic length, or with packed sequences."""
    model = f"models.{contract.name}"
    its = "its" if len(layers) == 1 else "their"
    way = (
        "Export the model with `torch.onnx.export(..., dynamo=False, dynamic_axes=...)`, which keeps the length "
        f"dynamic, and verify that file alone: `{model}.targets: {{onnx: {{artifact: dist/model.onnx}}}}`."
    )
    if is_packed:
        return (
            f"torch.export cannot capture the packed sequences that {listing(layers)} gets (torch 2.13). {way} A layer "
            "that reads in one direction can run on the padded tensor instead: its outputs up to each length are the "
            "same (`out[torch.arange(len(out)), lengths - 1]` is the last one of each)."
        )
    return (
        f"torch.export unrolls {listing(layers)} over {its} length, which is then a constant (torch 2.13). {way} If "
        "one length is enough, declare its dim `mode: static`."
    )


def value_words(failure: Failure) -> str:
    """What of a tensor's values torch.export would have to follow; empty if that is not what it stopped at."""
    text, line = _text(failure), failure.source.text if failure.source else ""
    if not DATA_DEPENDENT.search(text) or failure.foreign is not None:
        return ""
    if "extract specialized integer" in text:
        return "a size or index that is read from a tensor's values"
    if line.startswith("assert "):
        return "an assertion about a tensor's values"
    if line.startswith(("while ", "for ")):
        return "a number of steps that depends on a tensor's values"
    if "Size-like symbols: u" in text:
        return "a condition on a size that depends on a tensor's values"
    return "a branch on a tensor's values" if CONDITION.search(line) else ""


def _data_dependent_advice(failure: Failure, text: str) -> str:
    where = _at(failure)
    if failure.foreign is not None:
        return _foreign_advice(failure.foreign, where)
    known = value_size_advice(failure.source)
    if known:
        return known
    line = failure.source.text if failure.source else ""
    if "extract specialized integer" in text:
        called = counted(line)
        read = f"`{called.removesuffix('.item()')}.item()`" if called else "`.item()`"
        return (
            f"A size or index is read from a tensor's values{where}: write {read} instead of `int(...)`, and bound it "
            "in the next line: `torch._check(n >= 0)` and `torch._check(n <= limit)`, where `limit` is the length of "
            "the axis that it counts. Where it can be, compute it from shapes instead."
        )
    if line.startswith("assert "):
        tested = line.removeprefix("assert ").rpartition(",")[0] or line.removeprefix("assert ")
        return (
            f"The assertion{where} is about a tensor's values: write `torch._assert_async({tested})`, which stays in "
            "the program, or skip it there (`if not torch.compiler.is_exporting():` before it)."
        )
    if line.startswith(("while ", "for ")):
        return (
            f"The number of steps{where} depends on a tensor's values: make a fixed number of steps that change "
            "nothing once the condition fails (`x = torch.where(condition, step(x), x)`), or use "
            "`torch._higher_order_ops.while_loop(condition, step, (x,))`."
        )
    if "Size-like symbols: u" in text:
        return (
            f"The condition{where} is about a size that depends on a tensor's values (`nonzero`, a boolean index, "
            "`unique`): compute for all elements instead and take the result where it counts, which keeps the shape "
            "(`torch.where(mask, f(x), y)`); or, if only one side can happen, say so before it: `torch._check(n > 0)` "
            "for a size `n`."
        )
    made = [name for name in ("float", "bool") if counted(line, name)]
    if made and not CONDITION.search(line):
        return (
            f"A Python number is made of a tensor's values{where}: keep it a tensor, without `{made[0]}(...)`; "
            "operators take tensors of one element where they take numbers."
        )
    return (
        f"The branch{where} depends on a tensor's values, which torch.export cannot capture: compute both sides and "
        "choose with `torch.where(condition, one_side, other_side)`, or let `torch.cond(condition, f, g, (x,))` "
        "choose, whose `f` and "
        "`g` return new tensors of one shape (`x.clone()`, not `x`); if only one side can happen, keep that one and "
        "say so before it: `torch._assert_async(condition)`."
    )


def _foreign_advice(line: SourceLine, where: str) -> str:
    """What a caller can do about a line that is not the project's to change."""
    if "validate_args" in line.text or "constraint" in line.text.lower() or "/distributions/" in line.path:
        return (
            f"The check at {source_place(line)} looks at values, which torch.export cannot capture: switch it off "
            f"where you call it{where} (`validate_args=False`)."
        )
    if line.path.endswith("/transformer.py") and "causal" in line.text:
        return (
            f"torch compares the mask that you pass{where} with a causal one, which needs its values: say so where you "
            "call it, `is_causal=False` for an encoder, `tgt_is_causal=False` (and `memory_is_causal=False` with a "
            "`memory_mask`) for a decoder. The mask counts as before; False only says that nothing is to be skipped."
        )
    return (
        f"The branch at {source_place(line)} depends on a tensor's values, which torch.export cannot capture, and is "
        f"not the project's own. You call it{where}: export what goes into it (a detector's raw heads, for example), "
        "and do that step (NMS, filtering, decoding) outside of the exported model."
    )


def _constraint_advice(contract: ModelContract, failure: Failure, text: str, foreign: SourceLine | None) -> str:
    lines = failure.suggestions or tuple(_suggested(text))
    specialized = dict(SPECIALIZED.findall(text))
    advice = [_constant_advice(contract, name, value, failure, foreign) for name, value in specialized.items()]
    for line in (line.strip() for line in lines):
        if not any(line.startswith(f"{name} =") for name in specialized):
            advice += _suggestion_advice(contract, line, lines)
    if advice:
        return " ".join(dict.fromkeys(advice))
    return (
        f"Make `models.{contract.name}.dims` and the shapes under `inputs` match what the model's code requires; "
        "torch's message is in the details."
    )


def _suggested(text: str) -> list[str]:
    _, _, below = text.partition("Suggested fixes:\n")
    return [line.strip() for line in below.split("\n\n", 1)[0].splitlines() if line.strip()]


def _constant_advice(
    contract: ModelContract, name: str, value: str, failure: Failure, foreign: SourceLine | None
) -> str:
    key, dim = _key(contract, name), _dim(contract, name)
    # torch's own names (`_side`) count steps of `multiple-of`.
    size = int(value) * (dim.multiple_of if dim and name != dim.name else 1)
    if size == 1:
        return (
            f"The reference input has size 1 in '{_name(contract, name)}', which torch.export always treats as a "
            f"constant: set `{key}.example` to 2 or more, and verify size 1 with `{key}.separate: [1]`."
        )
    fixes = f"torch.export fixes '{_name(contract, name)}' to {size}, the size of its example input"
    fixed = f"declare `{key}: {{mode: static, min: {size}, max: {size}}}`"
    if foreign is not None:
        return (
            f"{fixes}, because {source_place(foreign)} makes a Python number of it (a loop over the length, "
            "`int(...)`). That line is not the project's own: choose another implementation in that package's options, "
            f"verify the sizes that callers send with `{key}.separate`, or, for one size, {fixed}."
        )
    known = constant_advice(failure.source)
    if known and failure.source:
        return f"{fixes}: at line {failure.source.line}, {known}. Or, if one size is enough, {fixed}."
    return (
        f"{fixes}: look in the model's code{_at(failure)} for a loop over that size, a hard-coded number (reshape, "
        "view, expand, a buffer of that size), an `int(...)` of a size, or another input whose axis is declared "
        f"constant. If the size is meant to be fixed, {fixed}."
    )


def _suggestion_advice(contract: ModelContract, line: str, lines: tuple[str, ...]) -> list[str]:
    """Advice for one of torch's suggested fixes; helper dims (`_H`) are explained by the line that uses them."""
    multiple, bounds = MULTIPLE.match(line), BOUNDS.match(line)
    same, constant = SAME.match(line), CONSTANT.match(line)
    # Order matters: DERIVED, the last one, matches what MULTIPLE does as well.
    if multiple and not _is_declared(contract, multiple.group(3)):
        name, factor = multiple.group(1), int(multiple.group(2))
        dim = _dim(contract, name)
        step = factor * dim.multiple_of if dim and dim.name != name else factor
        return [f"Set `{_key(contract, name)}.multiple-of` to {step}: the model requires it."]
    if bounds:
        name, low, high = bounds.groups()
        # torch prints bounds of its helper dims too; what to do about them is in the line that uses the helper.
        others = " ".join(other.partition("=")[2] for other in lines if other.strip() != line)
        is_helper = not _is_declared(contract, name) and re.search(rf"\b{re.escape(name)}\b", others)
        return [] if is_helper else [_bounds_advice(contract, name, low, high)]
    if constant:
        name, value = constant.groups()
        fixed = f"{_key(contract, name)}: {{mode: static, min: {value}, max: {value}}}"
        return [f"Declare `{fixed}` if one size is enough: torch.export fixes it."]
    if same:
        pair = (_name(contract, same.group(1)), _name(contract, same.group(2)))
        return [f"Use one dim for both axes: write '{pair[1]}' wherever a shape under `inputs` has '{pair[0]}'."]
    derived = DERIVED.match(line)
    return [_derived_advice(contract, *derived.groups())] if derived else []


def _derived_advice(contract: ModelContract, name: str, expression: str) -> str:
    written = expression.replace(" ", "")
    unknown = [free for free in re.findall(r"[A-Za-z_]\w*", written) if not _is_declared(contract, free)]
    names = listing([f"'{free}'" for free in unknown])
    declare = f"Declare {names} under `models.{contract.name}.dims` and write" if unknown else "Write"
    return (
        f"{declare} \"{written}\" wherever a shape under `inputs` has '{_name(contract, name)}': the model ties these "
        f"sizes together."
    )


def _bounds_advice(contract: ModelContract, name: str, low: str | None, high: str | None) -> str:
    dim = _dim(contract, name)
    step = dim.multiple_of if dim and dim.name != name else 1
    wanted = [f"`{bound}` to {int(size) * step}" for bound, size in (("min", low), ("max", high)) if size]
    return (
        f"Set {listing(wanted)} in `{_key(contract, name)}`, the range that the exported code "
        f"path covers; or remove the size check in the model that splits the range."
    )


def _dim(contract: ModelContract, name: str) -> Dim | None:
    """The declared dim behind torch's name; `_side` counts steps of a `side` with `multiple-of`."""
    by_name = {dim.name: dim for dim in contract.dims}
    return by_name.get(name) or by_name.get(name.lstrip("_"))


def _is_declared(contract: ModelContract, name: str) -> bool:
    return any(dim.name == name for dim in contract.dims)


def _name(contract: ModelContract, name: str) -> str:
    dim = _dim(contract, name)
    return name if dim is None else dim.name


def _key(contract: ModelContract, name: str) -> str:
    return f"models.{contract.name}.dims.{_name(contract, name)}"


def _at(failure: Failure) -> str:
    return at_source(failure.source)
