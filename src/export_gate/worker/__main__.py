"""Entry point, started by path under the project's interpreter: load this package by location, serve one request.

Nothing of the driver's environment is put on `sys.path`, and this folder is taken off it, so that the project's own
modules (a `model.py`, say) are never shadowed.
"""

from __future__ import annotations

import importlib.util
import os
import sys


def main() -> int:
    """Serve the request on standard input; exit status 0 unless the worker itself failed."""
    if sys.version_info < (3, 10):  # noqa: UP036 - the project's interpreter may be any
        version = sys.version.split()[0]
        sys.stderr.write(f"export-gate needs Python 3.10 or newer in the project; {sys.executable} is {version}\n")
        return 2
    load_package()
    from export_gate.worker import tasks

    return tasks.main(sys.argv[1:])


def load_package() -> None:
    """Put `export_gate` into `sys.modules` from this file's own location."""
    # Python puts the folder of the script that it runs on `sys.path`; a project's `import model` would find ours there.
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as little imported as possible
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]  # noqa: PTH100
    package = os.path.dirname(here)  # noqa: PTH120
    spec = importlib.util.spec_from_file_location(
        "export_gate",
        os.path.join(package, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[package],
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"export_gate cannot be loaded from {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["export_gate"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # skip torch's teardown, which would take a tenth of a second for nothing
