"""Words that several messages share."""

from __future__ import annotations

import pytest
from rule_samples import contract

from export_gate.rules.wording import exact, first_line, paragraph, targets_key
from export_gate.wall.contract import make_target


@pytest.mark.parametrize(
    ("listed", "key"),
    [
        ("model", "`models.glyph-head.targets.onnx.guards`"),
        ("defaults", "`defaults.targets.onnx.guards`"),
        (
            "nowhere",
            "`models.glyph-head.targets.onnx.guards` (which must then list all targets: exported-program, onnx)",
        ),
    ],
)
def test_advice_names_the_key_that_drops_no_target(listed: str, key: str):
    """A model that lists its own targets has no others: advice must not make users lose them."""
    promised = contract(targets_listed=listed, targets=(make_target("exported-program"), make_target("onnx")))
    assert targets_key(promised, "onnx", "guards") == key


def test_lines_that_point_into_the_line_above_are_left_out():
    """They are of use only in a fixed-width terminal, and twice as long as what they say."""
    assert paragraph("  raise error\n  ^^^^^^^^^^^\n    ~~~^^\nValueError: 2 ^ 3") == (
        "  raise error",
        "ValueError: 2 ^ 3",
    )


def test_a_whole_float_keeps_its_point():
    """`4` reads as an integer."""
    assert [exact(value, is_float=True) for value in (4.0, -4.0, 0.5, 1e20, None)] == [
        "4.0",
        "-4.0",
        "0.5",
        "1e+20",
        "unknown",
    ]
    assert exact(4.0) == "4"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            (
                "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running "
                "ConvTranspose node. Name:'node_convolution' Status Message: Computed output shape is inconsistent "
                "with input spatial dimensions. output_padding (1) may be too large for stride (1). Expected input "
                "size 10 but got 9."
            ),
            (
                "ConvTranspose node 'node_convolution': Computed output shape is inconsistent with input spatial "
                "dimensions. output_padding (1) may be too large for stride (1). Expected input size 10 but got 9."
            ),
        ),
        (
            (
                "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Reshape node. "
                "Name:'node_view' Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/"
                "reshape_helper.h:47 onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, bool) "
                "size was false. "
                "Input shape:{2,3}, requested shape:{4}"
            ),
            "Reshape node 'node_view': size was false. Input shape:{2,3}, requested shape:{4}",
        ),
        (
            "[ONNXRuntimeError] : 1 : FAIL : " + "Load model from a file failed. " * 20 + "Opset 30 is not known.",
            "..." + "Load model from a file failed. " * 7 + "Opset 30 is not known.",
        ),
    ],
)
def test_the_end_of_a_runtimes_message_is_what_is_wrong(message: str, words: str):
    """Its codes and its own source lines say nothing to the reader, and the last sentence says most."""
    assert first_line(message) == words


def test_hints_for_the_authors_of_torch_are_left_out_of_details():
    """How to log more of torch is no help; a line of the user's that names the variable stays."""
    text = (
        "Unsupported: data-dependent branching\n"
        '  File "model.py", line 9, in forward\n'
        "    if os.environ['TORCH_LOGS']:\n"
        "    ^^^\n"
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if you report a bug).\n"
        'For more information, run with TORCH_LOGS="dynamic"\n'
        "If you suspect the guard was triggered from C++, add TORCHDYNAMO_EXTENDED_DEBUG_CPP=1\n"
    )

    assert paragraph(text) == (
        "Unsupported: data-dependent branching",
        '  File "model.py", line 9, in forward',
        "    if os.environ['TORCH_LOGS']:",
    )
