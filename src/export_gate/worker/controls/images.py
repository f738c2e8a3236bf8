"""Read image files as tensors of the declared element type and shape, with Pillow if the project has it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from export_gate.wall.contract import TensorSpec
from export_gate.wall.errors import UserError
from export_gate.worker.controls.intervals import torch_dtype
from export_gate.worker.controls.specs import is_floating, shape_text

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Channels -> Pillow's mode."""
FULL = 255.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFolder:
    """The images of a folder, in the order of their paths; one image is one sample."""

    place: str
    files: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.files)

    def sample(self, path: str, spec: TensorSpec, index: int) -> torch.Tensor:
        """One image as `[C, H, W]` of the declared element type.

        uint8 is kept; floats are scaled to a declared range of [0, 1], or kept at [0, 255].

        Raises:
            UserError: Pillow is absent, the image cannot be read, or the contract has no place for it.
        """
        channels = spec.shape[-3].offset if len(spec.shape) > 2 and not spec.shape[-3].factors else 0  # noqa: PLR2004
        if channels not in MODES:
            raise UserError(
                f"{self.place}: input '{path}': expected a shape that ends in [1, 3 or 4 channels, height, width] for"
                f" images, got {shape_text(spec.shape)}",
                "Store the arrays in .npz instead.",
            )
        pixels = torch.from_numpy(_read(self.place, self.files[index], MODES[channels]))
        pixels = pixels.unsqueeze(0) if channels == 1 else pixels.permute(2, 0, 1)
        return (
            (pixels.to(torch_dtype(spec.dtype)) / self._scale(path, spec)).contiguous()
            if is_floating(spec)
            else self._whole(path, spec, pixels)
        )

    def _scale(self, path: str, spec: TensorSpec) -> float:
        if spec.range == (0, 1):
            return FULL
        if spec.range == (0, FULL):
            return 1.0
        raise UserError(
            f"{self.place}: input '{path}': expected a range of [0, 1] or [0, 255] for images, got"
            f" {'none' if spec.range is None else [b if isinstance(b, (int, float)) else str(b) for b in spec.range]}",
            "Declare one of them, or store normalised arrays in .npz.",
        )

    def _whole(self, path: str, spec: TensorSpec, pixels: torch.Tensor) -> torch.Tensor:
        if spec.dtype != "uint8":
            raise UserError(
                f"{self.place}: input '{path}': expected uint8 or a floating dtype for images, got {spec.dtype}",
                "Store the arrays in .npz instead.",
            )
        return pixels.contiguous()


def is_image(path: Path) -> bool:
    """A PNG or JPEG by its name."""
    return path.suffix.lower() in IMAGE_SUFFIXES


def _read(place: str, path: Path, mode: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError(
            f"{place}: expected the package Pillow to read {path.name}, it is not installed",
            "Install it in the project's environment: pip install pillow",
        ) from error
    try:
        with Image.open(path) as image:
            # 16 bits and floats: `convert` would clip them to 255.
            if image.mode.startswith(("I", "F")):
                raise UserError(
                    f"{place}: expected 8 bits per channel in {path.name}, got mode {image.mode}",
                    "Store the arrays in .npz instead.",
                )
            return np.array(image.convert(mode), dtype=np.uint8)
    # Pillow raises SyntaxError for a broken PNG.
    except (OSError, ValueError, SyntaxError) as error:
        raise UserError(
            f"{place}: expected a readable image, reading {path.name} failed: {error}", "Write the file again."
        ) from error
