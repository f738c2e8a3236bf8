"""The environment of the worker: what project code sees of the caller's variables."""

from __future__ import annotations

from collections.abc import Mapping

from export_gate.wall.variables import is_secret


def worker_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the environment that project code may see: no tokens, no CI variables."""
    return {
        name: value
        for name, value in environment.items()
        if (name.upper() in ALLOWED or name.upper().startswith(ALLOWED_PREFIXES)) and not is_secret(name)
    }


# Lists of what passes, not of what does not: a variable that nobody thought of may be a secret.
ALLOWED = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TMP", "TEMP", "PWD",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CI", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "LD_LIBRARY_PATH",
    "LD_PRELOAD", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING",
    "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "SYSTEMDRIVE",
    "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "WINDIR",
})  # fmt: skip
ALLOWED_PREFIXES = (
    "LC_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "TORCH", "PYTORCH_", "AOT_INDUCTOR_", "AOTI_", "ATEN_",
    "CUDA_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "XDG_", "ORT_", "ONNX_", "DNNL_", "ONEDNN_", "NUMPY_", "TRITON_",
)  # fmt: skip
