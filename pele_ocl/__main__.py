"""Entry points of the command line, `python -m pele_ocl` and `pele-ocl`, with clean handling of Ctrl-C and exit."""

from __future__ import annotations

import _thread
import _weakrefset
import atexit
import ctypes
import gc
import os
import signal
import sys
import threading
import weakref
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader
from types import FrameType

from .common.errors import INTERRUPTED

_COLLECTED = 200_000  # threshold of garbage collection, so that imports do not trigger it
# glibc's mallopt: M_TRIM_THRESHOLD, free memory kept at the end of the heap, and M_MMAP_THRESHOLD, the smallest block
# that is mapped separately. With the defaults, every large array is allocated with new pages, which takes longer than
# most operations on it.
_KEPT = {-1: 64 << 20, -3: 16 << 20}
_SPUN = "20"  # log2 of clock cycles for which idle BLAS threads of NumPy spin; the default is 28
_AGAIN = 0.02  # s, delay of an interrupt that cannot be handled safely
_CALLBACKS = (  # of weak references: to import locks, and to keys and values of weak dictionaries and sets
    ("<frozen importlib._bootstrap>", "cb"), (weakref.__file__, "remove"), (_weakrefset.__file__, "_remove"),
    (weakref.__file__, "__call__"),
)  # fmt: skip
_MAIN = threading.main_thread().ident or 0
_LOADING = (ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__)


def run() -> None:
    """Run the command line. After an interrupt, the exit code is 130."""
    codes: list[int] = []
    atexit.register(_leave_drivers, codes)  # before all others, and so called after them
    gc.set_threshold(_COLLECTED)
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _SPUN)
    if sys.platform == "linux":
        with suppress(AttributeError):  # not glibc
            for parameter, value in _KEPT.items():
                ctypes.CDLL(None).mallopt(parameter, value)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # ignored in background jobs
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from .cli import main

        main(prog_name="pele-ocl")
    except KeyboardInterrupt:  # while loading or after the command
        print("Interrupted", file=sys.stderr)
        codes.append(INTERRUPTED)
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        codes.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    finally:
        gc.freeze()  # skips the final garbage collection, which takes 0.1 s


def _leave_drivers(codes: list[int]) -> None:
    """End the process without Python's and the libraries' own steps, if a thread still starts drivers.

    These steps would wait for a driver that hangs, or crash one that is starting. codes : exit code; [] after an error
    """
    runtimes = sys.modules.get(f"{__package__}.opencl.runtimes")
    if runtimes is not None and runtimes.is_loading():
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
                stream.flush()
        os._exit(codes[0] if codes else 1)


def run_as_apbs() -> None:
    """Run `pele-ocl pb` as a replacement for `apbs`, which other programs call with only an input file."""
    sys.argv.insert(1, "pb")
    run()


def run_as_explore() -> None:
    """Run `pele-ocl explore` as a replacement for PELE, which AdaptivePELE calls with only a control file.

    With mpirun or srun, the first process runs all explorers, unless they are distributed by --shard or --ranks. Like
    PELE, it overwrites an earlier run in the folder, unless --resume is given.
    """
    from .jobs.launchers import launched

    if launched()[0] == 0 or any(word.startswith(("--ranks", "--shard")) for word in sys.argv):
        sys.argv[1:1] = ["explore"] if {"--resume", "--overwrite"} & {*sys.argv} else ["explore", "--overwrite"]
        run()


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or try again a little later if this is not safe.

    C++ extension modules abort if the exception is raised while they are loaded. In code run by `exec`, as for
    dataclasses, a second interrupt can kill Python. Exceptions in __del__ and callbacks of weak references are lost.
    """
    is_bad = frame is not None and frame.f_code.co_filename == "<string>"
    while frame is not None and not is_bad:
        code = frame.f_code
        is_bad = code in _LOADING or code.co_name == "__del__" or (code.co_filename, code.co_name) in _CALLBACKS
        frame = frame.f_back
    if not is_bad:
        raise KeyboardInterrupt
    again = threading.Timer(_AGAIN, _interrupt_main)
    again.daemon = True
    again.start()


def _interrupt_main() -> None:
    """Send SIGINT to the main thread, which also ends waiting for a lock, unlike interrupt_main."""
    if hasattr(signal, "pthread_kill"):  # not on Windows
        signal.pthread_kill(_MAIN, signal.SIGINT)
    else:
        _thread.interrupt_main()


if __name__ == "__main__":
    run()
