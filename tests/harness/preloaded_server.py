"""A process that has imported what every worker imports; each worker that a test starts is a forked copy of it.

`python preloaded_server.py DESCRIPTOR`, started with the worker's flags, takes one message per worker from a socket:
its environment, folder and driver as JSON, with its standard streams as descriptors. It answers with the worker's
process id, and ends once the other end is closed.

The copy goes on where the worker's own `__main__` has loaded the package. It differs from a fresh interpreter only in
what is loaded already and in `/proc/<pid>/environ`, which no process can rewrite. So tests that look for what a run
leaves behind by an environment variable start real workers.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

WORKER = Path(__file__).parents[2] / "src" / "export_gate" / "worker" / "__main__.py"
MESSAGE_BYTES = 1 << 17
PR_SET_PDEATHSIG = 1


def main(control: socket.socket) -> None:
    """Fork a worker for every message."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    before = dict(os.environ)
    preload()
    added = {name: value for name, value in os.environ.items() if before.get(name) != value}
    while True:
        message, streams, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 3)
        if not message:
            return
        order = json.loads(message)
        order["environment"] = {**added, **order["environment"]}  # torch sets variables when it is imported
        control.send(str(fork_worker(order, streams, control)).encode())
        for descriptor in streams:
            os.close(descriptor)


def preload() -> None:
    """Import what a worker imports, by its own list."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or os.curdir).resolve() != Path(__file__).parent]
    runpy.run_path(str(WORKER))["load_package"]()
    from export_gate.worker import tasks  # noqa: F401 - each copy runs it
    from export_gate.worker.process import preload as lists

    for name in (*lists.ALWAYS, *lists.EXPORT_MODULES, *(module for kind in lists.KINDS for module in kind.preload)):
        try:
            lists.load(name)
        except Exception:  # noqa: BLE001 - the worker reports it, in its own words
            continue
    importlib.import_module("export_gate.worker.study.engine")  # a worker's usual task
    gc.collect()
    gc.freeze()


def fork_worker(order: dict[str, Any], streams: list[int], control: socket.socket) -> int:
    """The process id of a new worker, which is a child of the test's process, as one that it starts itself would be.

    The process in between ends at once, so the system gives the worker to the nearest ancestor that adopts orphans.
    """
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os.close(writer)
            control.close()
            become_worker(order, streams)
        os.write(writer, str(pid).encode())
        os._exit(0)
    os.close(writer)
    pid = int(os.read(reader, 32))
    os.close(reader)
    os.waitpid(between, 0)
    return pid


def become_worker(order: dict[str, Any], streams: list[int]) -> NoReturn:
    """Set up everything that a new process gets from its parent, and run the worker."""
    while os.getppid() != order["driver"]:
        time.sleep(0.001)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
    os.setsid()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    numpy = sys.modules.get("numpy")
    if numpy is not None:  # seeded on import; the standard library's generator reseeds itself after a fork
        numpy.random.seed()
    sys.argv = [str(WORKER)]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__file__ = str(WORKER)
    status = 1
    try:
        status = sys.modules["export_gate.worker.tasks"].main([])
        sys.stderr.flush()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - the last frame of this process
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
