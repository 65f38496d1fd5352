"""Ctrl-C: one line, exit code 130, and all that was done stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import pytest
from test_cli import HEXAPEPTIDE, on_the_chosen_device  # noqa: F401

from pele_ocl import __main__ as program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of a group of processes")
PATIENCE = 120  # seconds


def interrupted(arguments: list[object], when: Path) -> tuple[int, str]:
    """Return exit code and stderr of a command whose group gets SIGINT, as from a terminal, once a file exists."""
    command = [sys.executable, "-m", "pele_ocl", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        end = time.monotonic() + PATIENCE
        while not when.exists() and child.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        os.killpg(child.pid, signal.SIGINT)
        _, told = child.communicate(timeout=PATIENCE)
    return child.returncode, told


def many(folder: Path, n: int) -> list[Path]:
    paths = [folder / f"p{k}.pdb" for k in range(n)]
    for path in paths:
        path.write_bytes(HEXAPEPTIDE.read_bytes())
    return paths


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_an_interrupted_run_ends_in_one_line(more, tmp_path):
    if more:
        pytest.importorskip("distributed")
    paths, out = many(tmp_path, 400), tmp_path / "out"
    command = ["minimize", *paths, "-o", out, "--tolerance", "0.001"]
    code, told = interrupted([*command, *more], out / "p0.pdb")
    assert code == 130
    assert told.splitlines()[-1] == "Interrupted"
    assert "Traceback" not in told
    # A slow machine also tells of kernels that are compiled, and how far it is.
    assert len([line for line in told.splitlines() if not line.startswith(("Compiling", "Minimizing:"))]) == 1
    written = list(out.glob("*.pdb"))
    assert 0 < len(written) < 400
    assert all(path.read_text().endswith("END\n") for path in written)


def test_an_interrupt_while_modules_are_imported(tmp_path):
    """An interrupt comes when click is looked for, before there is a command."""
    (tmp_path / "hook.py").write_text(
        textwrap.dedent("""
            import os, signal, sys
            class Finder:
                def find_spec(self, name, *_):
                    if name == "click":
                        os.kill(os.getpid(), signal.SIGINT)
            sys.meta_path.insert(0, Finder())
            from pele_ocl.__main__ import run
            run()
        """)
    )
    child = subprocess.run([sys.executable, tmp_path / "hook.py", "devices"], capture_output=True, text=True)
    assert (child.returncode, child.stdout, child.stderr) == (130, "", "Interrupted\n")


@pytest.fixture
def handled():
    """SIGINT goes where it goes in the program."""
    before = signal.signal(signal.SIGINT, program._interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def test_no_interrupt_within_a_module_that_is_being_loaded(handled, monkeypatch):
    """C++ modules abort the process at an exception; the interrupt comes once they are loaded."""
    reached = []

    def load() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)  # in which it is tried again, several times
        reached.append("loaded")

    with monkeypatch.context() as patched:
        patched.setattr(program, "_LOADING", (load.__code__,))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  the interrupt comes while it waits, not while it loads
            load()
            for _ in range(100):
                time.sleep(0.05)
    assert reached == ["loaded"]
    with pytest.raises(KeyboardInterrupt):
        load()
    assert reached == ["loaded"]


def test_an_interrupt_that_is_tried_again_ends_waiting_for_a_lock(handled, monkeypatch):
    """As for a thread with a driver that hangs."""
    lock = threading.Lock()

    def load() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(program, "_LOADING", (load.__code__,))
    lock.acquire()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        load()
        lock.acquire(timeout=PATIENCE)
    assert time.monotonic() - begun < PATIENCE


class Dying:
    """Is interrupted while it is destroyed, where Python passes over what is raised."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)


def test_no_interrupt_is_swallowed_by_what_is_destroyed(handled):
    """An interrupt comes a little later, after __del__ and after a callback of a weak reference."""
    for begin in (lambda: Dying(), lambda: weakref.finalize(Dying, os.kill, os.getpid(), signal.SIGINT)()):
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            begin()
            for _ in range(100):
                time.sleep(0.05)


def test_an_interrupt_that_is_ignored_stays_so():
    """A shell's background commands ignore it."""
    code = """
        import signal, sys
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from pele_ocl.__main__ import run
        sys.argv = ["pele-ocl", "--version"]
        try:
            run()
        except SystemExit:
            print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[1:] == ["True"]
