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
    line = user_line(source)
    for call in line.calls() if line and source else ():
        name = name_of(call)
        if line and name in LIMITS and not _has(call, *LIMITS[name][:2]):
            argument, _, what = LIMITS[name]
            written = line.segment(call)
            fixed = f"{written[:-1].rstrip(', ')}, {argument}=...)"
            return (
                f"`{written}` takes {what} from the values of its input, so that its size is another for other inputs: "
                f"write `{fixed}` with {what} that the model is made for."
            )
        if line and name in DISTRIBUTIONS and not _has(call, "validate_args", 99):
            written = line.segment(call)
            return (
                f"`{name}` checks the values of its arguments, which torch.export cannot capture: write "
                f"`{written[:-1].rstrip(', ')}, validate_args=False)`."
            )
    return ""


def value_size_words(source: SourceLine | None) -> str:
    """The same without the advice."""
    return value_size_advice(source).partition(": write ")[0]


def _has(call: ast.Call, argument: str, place: int) -> bool:
    return len(call.args) > place or any(each.arg in (argument, None) for each in call.keywords)
