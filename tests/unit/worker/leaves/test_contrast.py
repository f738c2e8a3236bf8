"""What a wrong output would look like, and whether an output takes few values at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from export_gate.worker.leaves.contrast import grid_step

GENERATOR = np.random.default_rng(0)
NOISE = GENERATOR.normal(size=1000).astype(np.float32)


@pytest.mark.parametrize("scale", [0.016, 0.5])
def test_the_step_of_a_quantised_output_is_found(scale: float):
    """The rounding of float32 does not hide it."""
    quantised = torch.fake_quantize_per_tensor_affine(torch.from_numpy(NOISE), scale, 110, 0, 255).numpy()

    assert grid_step(quantised) == pytest.approx(scale, rel=1e-4)


@pytest.mark.parametrize(
    "values",
    [
        NOISE,
        np.maximum(NOISE, 0),
        NOISE.round() ** 3 / 7 + np.sqrt(2) * (NOISE > 0),
        (NOISE > 0).astype(np.float32),
        np.full(100, np.nan, dtype=np.float32),
        np.array([0.0, 0.5, 1.0], dtype=np.float32),
    ],
    ids=["normal", "rectified", "uneven", "two values", "not finite", "few elements"],
)
def test_other_outputs_have_no_step(values: np.ndarray):
    """Two values always lie on a grid, and so do as many values as elements."""
    assert grid_step(values) == 0.0
