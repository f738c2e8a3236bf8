"""Say what to write for a call of torch whose result has a size that depends on values, or that looks at values."""

from __future__ import annotations

import ast

from export_gate.rules.user_lines import name_of, user_line
from export_gate.wall.source import SourceLine

LIMITS = {
    "one_hot": ("num_classes", 1, "the number of classes"),
    "bincount": ("minlength", 2, "the number of bins"),
    "repeat_interleave": ("output_size", 3, "the length of the result"),
    "pad_sequence": ("total_length", 9, "the length"),
}
"""Function -> the argument that fixes its size, the place of that, and what it is."""
DISTRIBUTIONS = (
    "Normal", "Categorical", "Bernoulli", "MultivariateNormal", "Independent", "Beta", "Dirichlet", "Gamma", "Laplace",
    "Uniform", "Exponential", "Poisson", "OneHotCategorical", "TransformedDistribution", "LogNormal", "StudentT",
)  # fmt: skip


def value_size_advice(source: SourceLine | None) -> str:
    """The next step; empty if the line calls nothing of the kind."""
    return _found(source)[1]


def value_size_words(source: SourceLine | None) -> str:
    """What the call does; empty likewise."""
    return _found(source)[0]


def _found(source: SourceLine | None) -> tuple[str, str]:
    line = user_line(source)
    for call in line.calls() if line else ():
        name, written = name_of(call), line.segment(call) if line else ""
        start = written[:-1].rstrip(", ")
        if name in LIMITS and not _has(call, *LIMITS[name][:2]):
            argument, _, what = LIMITS[name]
            words = (
                f"`{written}` takes {what} from the values of its input, so that its size is another for other inputs"
            )
            return words, f"Write `{start}, {argument}=...)` with {what} that the model is made for."
        if name in DISTRIBUTIONS and not _has(call, "validate_args", 99):
            words = f"`{name}` checks the values of its arguments, which torch.export cannot capture"
            return words, f"Write `{start}, validate_args=False)`: {words}."
    return "", ""


def _has(call: ast.Call, argument: str, place: int) -> bool:
    return len(call.args) > place or any(each.arg in (argument, None) for each in call.keywords)
