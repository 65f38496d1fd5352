"""`python -m pele_ocl` and the script `pele-ocl`: the command, which Ctrl-C ends in one line at any moment."""

from __future__ import annotations

import _thread
import _weakrefset
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

_COLLECTED = 200_000  # new objects after which garbage is collected; loading modules makes none
# glibc's mallopt: M_TRIM_THRESHOLD, free memory that stays at the end of the heap, and M_MMAP_THRESHOLD, the smallest
# block that is mapped separately. With the defaults each large array gets new pages, which take longer than most
# operations on it.
_KEPT = {-1: 64 << 20, -3: 16 << 20}
_SPUN = "20"  # log2 of the clock cycles for which idle threads of NumPy's BLAS, one per core, spin; its default is 28
_AGAIN = 0.02  # seconds until an interrupt that came at a bad moment is tried again
_CALLBACKS = (  # of weak references: to locks of imports, and to the keys and values of weak dictionaries and sets
    ("<frozen importlib._bootstrap>", "cb"), (weakref.__file__, "remove"), (_weakrefset.__file__, "_remove"),
    (weakref.__file__, "__call__"),
)  # fmt: skip
_LOADING = (ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__)


def run() -> None:
    """Run the command; an interrupt ends it with exit code 130."""
    gc.set_threshold(_COLLECTED)
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _SPUN)
    if sys.platform == "linux":
        with suppress(AttributeError):  # not glibc
            for parameter, value in _KEPT.items():
                ctypes.CDLL(None).mallopt(parameter, value)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # ignored, say, in the background of a shell
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from .cli import main

        main(prog_name="pele-ocl")
    except KeyboardInterrupt:  # before the command was there, or behind it
        print("Interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()  # Python looks through all objects for garbage as it ends, which takes a tenth of a second


def run_as_apbs() -> None:
    """Run `pele-ocl pb` with these arguments, as programs that call APBS do: with an input file alone."""
    sys.argv.insert(1, "pb")
    run()


def run_as_explore() -> None:
    """Run `pele-ocl explore` with these arguments, as AdaptivePELE calls PELE: with a control file alone.

    mpirun and srun start it many times; the first process runs the explorers of all, unless --shard shares them out.
    As PELE, it overwrites an earlier run in the folder, unless --resume is given.
    """
    from .jobs.launchers import launched

    if launched()[0] == 0 or any(word.startswith(("--ranks", "--shard")) for word in sys.argv):
        sys.argv[1:1] = ["explore"] if {"--resume", "--overwrite"} & {*sys.argv} else ["explore", "--overwrite"]
        run()


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or try again a little later where it would kill the process instead of ending it.

    A module written in C++ aborts if it comes while that module is loaded. Python itself ends by the signal if one
    comes after another in executed text, as when dataclasses are made. Exceptions from __del__ and from callbacks of
    weak references are passed over.
    """
    is_bad = frame is not None and frame.f_code.co_filename == "<string>"
    while frame is not None and not is_bad:
        code = frame.f_code
        is_bad = code in _LOADING or code.co_name == "__del__" or (code.co_filename, code.co_name) in _CALLBACKS
        frame = frame.f_back
    if not is_bad:
        raise KeyboardInterrupt
    again = threading.Timer(_AGAIN, _thread.interrupt_main)
    again.daemon = True
    again.start()


if __name__ == "__main__":
    run()
