"""Read data files as named arrays: .npz, .npy, .safetensors, .pt and folders of images."""

from __future__ import annotations

import pickle
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.errors import UserError
from export_gate.worker.controls.images import ImageFolder, is_image

SUFFIXES = (".npz", ".npy", ".safetensors", ".pt")
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
SINGLE = "array"
"""The key of a .npy file's only array."""

# What NumPy, torch and zipfile raise for a damaged file, which have no class in common.
_BROKEN = (
    OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error, pickle.UnpicklingError,
)  # fmt: skip


def load_arrays(place: str, path: Path) -> Mapping[str, Any]:
    """Key -> numpy array or torch tensor; .npz members and images are read when they are asked for.

    Only tensors are unpickled (`allow_pickle=False`, `weights_only=True`).

    Raises:
        UserError: the file is missing, a Git LFS pointer, truncated, of another kind, or needs an absent package.
    """
    if not path.exists():
        raise UserError(f"{place}: expected a file at {path}, there is none", "The path starts at the config's folder.")
    if path.is_dir():
        return _folder(place, path)
    refuse_pointer(place, path)
    if path.suffix not in SUFFIXES:
        raise UserError(
            f"{place}: expected {', '.join(SUFFIXES)} or a folder of images, got {path.name}", "Convert the file."
        )
    try:
        return _Checked(place, path, _open(place, path))
    except _BROKEN as error:
        raise _unreadable(place, path, error) from error


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an .npz; unlike `numpy.savez` it takes any name, `file` included."""
    with zipfile.ZipFile(path, "w") as archive:
        # Without `force_zip64` a member may not exceed 2 GiB, since its size is not known when it is opened.
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def refuse_pointer(place: str, path: Path) -> None:
    """Git LFS leaves a small text file where the content was not fetched.

    Raises:
        UserError: the file is such a pointer.
    """
    with path.open("rb") as file:
        start = file.read(len(LFS_POINTER))
    if start == LFS_POINTER:
        raise UserError(
            f"{place}: expected data in {path.name}, got a Git LFS pointer",
            "Fetch it with `git lfs pull` (in a workflow: actions/checkout with `lfs: true`).",
        )


# An .npz is read member by member, long after `load_arrays` has returned.
class _Checked(Mapping[str, Any]):
    """Arrays whose reading may still fail."""

    def __init__(self, place: str, path: Path, arrays: Mapping[str, Any]) -> None:
        self._place, self._path, self._arrays = place, path, arrays

    def __getitem__(self, key: str) -> Any:
        if key not in self._arrays:
            raise KeyError(key)
        try:
            return self._arrays[key]
        except _BROKEN as error:
            raise _unreadable(self._place, self._path, error) from error

    def __iter__(self) -> Any:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _open(place: str, path: Path) -> Mapping[str, Any]:
    match path.suffix:
        case ".npz":
            loaded: Mapping[str, Any] = np.load(path, allow_pickle=False)
            return loaded
        case ".npy":
            return {SINGLE: np.load(path, allow_pickle=False)}
        case ".safetensors":
            return _safetensors(place, path)
        case _:
            return _tensors(place, path)


def _safetensors(place: str, path: Path) -> Mapping[str, Any]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise UserError(
            f"{place}: expected the package safetensors to read {path.name}, it is not installed",
            "Install it in the project's environment: pip install safetensors",
        ) from error
    try:
        loaded: Mapping[str, Any] = load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    return loaded


def _tensors(place: str, path: Path) -> Mapping[str, Any]:
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(loaded, Mapping) or not all(isinstance(value, torch.Tensor) for value in loaded.values()):
        kind = type(loaded).__name__
        raise UserError(
            f"{place}: expected a dict of tensors in {path.name}, got {kind}", "Save it as torch.save({'x': x}, path)."
        )
    return {str(key): value for key, value in loaded.items()}


def _folder(place: str, path: Path) -> Mapping[str, Any]:
    files = tuple(sorted(file for file in path.rglob("*") if is_image(file)))
    if not files:
        raise UserError(f"{place}: expected PNG or JPEG images in {path}, found none", "Add some, or name a data file.")
    for file in files:
        refuse_pointer(place, file)
    # As image folders are mostly laid out, a folder for each class.
    return {"images": ImageFolder(place=place, files=files), "label": np.array([file.parent.name for file in files])}


def _unreadable(place: str, path: Path, error: BaseException) -> UserError:
    cause = f"{type(error).__name__}: {(str(error).strip() or 'no details').splitlines()[0]}"
    return UserError(
        f"{place}: expected a readable {path.suffix} file, reading {path.name} failed: {cause}",
        "The file is truncated, damaged, or holds pickled objects; write it again.",
    )
