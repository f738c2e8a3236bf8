"""TorchScript files, which `init` takes as references: torch.export does not accept them."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path

from export_gate.starter.names import kebab
from export_gate.starter.write import Wish
from export_gate.wall.errors import UserError

LOADER = "torch.jit:load"
"""The factory of a model that is only a file."""


def is_torchscript(path: Path) -> bool:
    """Whether the file is an archive as `torch.jit.save` writes it; one of `torch.save` has no code in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
    # An archive has one folder, named after the file that it was first saved as.
    below = {name.partition("/")[2] for name in names}
    return "constants.pkl" in below and any(name.startswith("code/") for name in below)


def as_reference(wish: Wish, artifact: str, config: Path) -> Wish:
    """The wish for a config in which the file is the reference, and no longer what is verified.

    Raises:
        UserError: there is another reference, which the file would have to be verified against.
    """
    if wish.factories:
        raise UserError(
            f"--artifact {artifact}: expected an ONNX file, got TorchScript, which is no target",
            "name the ONNX file that you ship; or omit FACTORY, and the TorchScript file is the reference of files that"
            " were made from it",
        )
    place = Path(os.path.relpath(artifact, config.absolute().parent)).as_posix()
    return replace(
        wish, factories=(LOADER,), kwargs={"f": place, **wish.kwargs}, artifact=None, name=kebab(Path(artifact).stem)
    )
