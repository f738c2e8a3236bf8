"""Read the signatures of torch's translations to ONNX once for all models, instead of at each conversion."""

from __future__ import annotations

import functools


def read_signatures() -> None:
    """Let each translation keep its signature, and read those that there are."""
    from torch.onnx._internal.exporter import _registration

    keep_signatures()
    was_disabled = _registration.logger.disabled
    _registration.logger.disabled = True  # each conversion repeats what it says of packages that are not installed
    try:
        _registration.ONNXRegistry.from_torchlib()
    finally:
        _registration.logger.disabled = was_disabled


def keep_signatures() -> None:
    """Let each translation keep its signature once it was read.

    For every conversion, the exporter lists its 700 translations anew, and parses the source of each to learn its
    domain and parameters: a second of CPU time, a third of a small model's whole run (torch 2.13, onnxscript 0.7). The
    list itself is not kept: an import of torchvision, say, adds to it.
    """
    from onnxscript._internal.values import TracedOnnxFunction
    from torch.onnx._internal.exporter import _schemas

    parsed = vars(TracedOnnxFunction).get("function_ir")
    if isinstance(parsed, property) and parsed.fget is not None:
        kept = functools.cached_property(parsed.fget)
        kept.__set_name__(TracedOnnxFunction, "function_ir")
        TracedOnnxFunction.function_ir = kept
    read = _schemas.op_signature_from_function
    if not hasattr(read, "cache_info"):
        _schemas.op_signature_from_function = functools.cache(read)
