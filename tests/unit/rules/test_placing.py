"""A recipe is written into the user's own line, with what stands there, so that it can be pasted."""

from __future__ import annotations

import pytest

from export_gate.rules.recipe_table import COMPLEX, Recipe
from export_gate.rules.recipes import recipe_of
from export_gate.rules.user_lines import converted_call
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.source import SourceLine

ATAN2 = ("aten.atan2.default", "torch.atan2", {})
CDIST = ("aten._cdist_forward.default", "torch.cdist", {"p": "2.0"})
MEDIAN = ("aten.median.dim", "torch.median", {"dim": "1", "keepdim": "False"})


def _node(text: str, operator: str, function: str, arguments: dict[str, str], module: str = "") -> GuiltyNode:
    source = SourceLine(path="m.py", line=9, text=text)
    return GuiltyNode(
        name="n", operator=operator, function=function, arguments=tuple(arguments.items()), module=module, source=source
    )


def _recipe(text: str, *node: object, module: str = "", error: str = "") -> Recipe:
    found = recipe_of(_node(text, *node, module=module), error)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "node", "lines"),
    [
        ("return torch.cdist(a, b)", CDIST, "return (a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1).sqrt()"),
        (
            "d = -torch.cdist(self.q(x), self.book.weight, p=2.0) ** 2",
            CDIST,
            "d = -(self.q(x).unsqueeze(-2) - self.book.weight.unsqueeze(-3)).square().sum(-1).sqrt() ** 2",
        ),
        ("m = x.median(dim=1)[0]", MEDIAN, "m = x.sort(dim=1).values.select(1, (x.shape[1] - 1) // 2)"),
        (
            "return torch.sqrt(re**2), torch.atan2(im, re)",
            ATAN2,
            (
                "out = torch.atan2(im, re)\n"
                "out = torch.where((im == 0) & (re < 0), torch.pi, out)\n"
                "out = torch.where(re == 0, torch.sign(im) * (torch.pi / 2), out)\n"
                "return torch.sqrt(re**2), out"
            ),
        ),
        (
            "phase = torch.atan2(im, re)",
            ATAN2,
            (
                "phase = torch.atan2(im, re)\n"
                "phase = torch.where((im == 0) & (re < 0), torch.pi, phase)\n"
                "phase = torch.where(re == 0, torch.sign(im) * (torch.pi / 2), phase)"
            ),
        ),
    ],
)
def test_the_users_statement_is_written_with_the_recipe_in_it(
    text: str, node: tuple[str, str, dict[str, str]], lines: str
):
    """Whole, in the user's names, and the result goes where it went."""
    found = _recipe(text, *node)
    assert found.lines == lines
    assert found.words.startswith("Replace line 9 with the line")


def test_a_computed_argument_is_computed_once_under_a_name_of_its_own():
    """The user's variables stay what they are, as far as the statement shows them."""
    found = _recipe("x = torch.atan2(f(x), x)", *ATAN2)
    assert found.lines.splitlines()[:2] == ["y_ = f(x)", "out_ = torch.atan2(y_, x)"]
    assert found.lines.splitlines()[-1] == "x = out_"


def test_a_layers_weights_are_its_attributes_and_a_missing_bias_is_left_out():
    """`self.up(x)` has no weights in the line."""
    settings = {
        "stride": "[1]",
        "padding": "[1]",
        "output_padding": "[2]",
        "groups": "1",
        "dilation": "[3]",
        "bias": "None",
    }
    node = ("aten.conv_transpose1d.default", "torch.conv_transpose1d", settings)
    found = _recipe("return self.up(x)", *node, module="decoder.up", error="output_padding")
    assert found.lines.splitlines()[1:] == [
        "out = F.conv_transpose1d(x, self.up.weight, None, [1], 0, 0, 1, [3])",
        "out = F.pad(out, (0, 2))",
        "out = out[..., 1 : -1 or None]",
        "return out",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "return [torch.atan2(a, b) for a in pairs]",
        "return torch.atan2(a, b) + torch.atan2(b, a)",
        "return torch.atan2(*parts)",
        "return angle(a, b)",
        "torch.atan2(a,",
        "values, places = x.atan2()",
    ],
)
def test_a_line_that_does_not_surely_say_it_gets_the_recipe_as_it_is(text: str):
    """With words about its names."""
    found = _recipe(text, *ATAN2)
    assert found.lines.startswith("out = torch.atan2(y, x)\n")
    assert "`y` and `x` stand for its arguments, `out` for the result" in found.words


def test_a_line_with_several_such_calls_is_said_to_need_more():
    """Somebody who rewrites one of them meets the same red again."""
    found = _recipe("return torch.atan2(a, b), torch.atan2(c, d)", *ATAN2)

    assert found.words.endswith("and convert; line 9 has further calls like it, which need the same")
    assert "further calls" not in _recipe("phase = torch.atan2(im, re)", *ATAN2).words
    assert "further calls" not in _recipe("return self.body(x)", *ATAN2).words


def test_an_exception_and_a_cost_are_said_beside_the_claim():
    """Equality that has an exception is no equality."""
    assert "the same results in eager (but -0.0 counts as 0.0)" in _recipe("a = torch.atan2(b, c)", *ATAN2).words
    assert _recipe("a = torch.cdist(b, c)", *CDIST).words.endswith("in memory at once (rows * rows * columns)")


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        (
            "return torch.cumsum(x.to(torch.uint8), dim=1, dtype=torch.uint8)",
            "return torch.cumsum(x.to(torch.uint8).to(torch.int32), dim=1, dtype=torch.int32).to(torch.uint8)",
        ),
        ("last = codes.cumsum(1)[:, -1]", "last = codes.to(torch.int32).cumsum(1).to(torch.uint8)[:, -1]"),
        ("return torch.cumsum(x, axis)", ""),
        ("return torch.cumsum(x, 0) + torch.cumsum(x, 1)", ""),
    ],
)
def test_a_call_is_converted_with_its_dtype_argument(text: str, edited: str):
    """Only where one argument alone can be a tensor."""
    node = _node(text, "aten.cumsum.default", "torch.cumsum", {})
    assert converted_call(node, "int32", "uint8") == edited


@pytest.mark.parametrize(
    ("equation", "error", "is_advised"),
    [("'bix,iox->box'", COMPLEX, True), ("'i,j,k->ijk'", COMPLEX, False), ("'bix,iox->box'", "", False)],
)
def test_a_complex_product_of_two_tensors_has_parts(equation: str, error: str, is_advised: bool):
    """That of three has others, and real tensors have a translation."""
    text = f"low = torch.einsum({equation}, spectrum, self.weight)"
    found = recipe_of(_node(text, "aten.einsum.default", "torch.einsum", {"equation": equation}), error)
    assert (found is not None) is is_advised
    if found is not None:
        assert found.lines.splitlines()[-1] == "low = torch.complex(real_, imag_)"
        assert f"torch.einsum({equation}, spectrum.real, self.weight.imag)" in found.lines
