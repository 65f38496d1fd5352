"""Sets of Poisson-Boltzmann grids that threads solve concurrently: errors, interrupts, memory, callers, forks."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest
from test_pb import random_molecule

from pele_ocl import Grid, PBIon, PBModel, PeleError, PoissonBoltzmann
from pele_ocl.common.errors import DeviceMemoryError
from pele_ocl.opencl import Device, Queue, get_device
from pele_ocl.opencl.queue import Turns
from pele_ocl.pb.equation import StoppedError

PATIENCE = 60  # seconds
NOT_ENDED: list[str] = []  # threads that read_until_ended had to end
Watch = Callable[[Callable[[int, Queue], None]], list[int]]


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pele_ocl.pb.plan.sets_at_once", lambda device, n_nodes: 3)


def queues_in_use() -> set[int]:
    """Return the command queues that are in use, such as those of another test's ensembles."""
    device = get_device()
    return {*map(id, device.further)} - {*map(id, device.spare)}


@pytest.fixture(autouse=True)
def all_ends(run: PoissonBoltzmann) -> Iterator[None]:
    """Threads that a test starts have ended, their command queues are unused, and their memory is free."""
    threads, device = {*threading.enumerate()}, get_device()
    gc.collect()
    held, used = device.held_bytes, queues_in_use()
    yield
    assert {*threading.enumerate()} <= threads
    assert not NOT_ENDED
    assert queues_in_use() == used
    gc.collect()  # the frames of an error
    assert device.held_bytes == held


@pytest.fixture(scope="module")
def run() -> PoissonBoltzmann:
    run = PoissonBoltzmann(random_molecule(), spacing=1.5)
    run.solve_frames(run.atoms.positions[None])  # builds the kernels, and uploads the tables that the device keeps
    return run


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Function that calls another one, with the set's number and its queue, before each set of one problem is solved.

    It returns the list of the numbers of sets that were begun.
    """

    def watch(work: Callable[[int, Queue], None]) -> list[int]:
        begun, own = list[int](), PoissonBoltzmann._solved_part

        def solved_part(of: PoissonBoltzmann, problems: Any, part: slice, geometry: Any, queue: Queue) -> Any:
            begun.append(part.start)
            work(part.start, queue)
            return own(of, problems, part, geometry, queue)

        monkeypatch.setattr(PoissonBoltzmann, "_solved_part", solved_part)
        return begun

    return watch


def read_until_ended(queue: Queue) -> None:
    """Read as a solver without end does, for no longer than a test may take."""
    buffer, end = queue.send(np.arange(5)), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        queue.download(buffer, 5)
    NOT_ENDED.append(threading.current_thread().name)


def frames_of(run: PoissonBoltzmann, n: int) -> Any:
    return np.linspace(1, 0.9, n)[:, None, None] * run.atoms.positions


def energies_of(run: PoissonBoltzmann, n: int, **options: Any) -> list[float]:
    return [each.energy_kt for each in run.solve_frames(frames_of(run, n), rows=1, **options)]


def test_an_error_in_one_set_ends_the_others(run, watched):
    others_run = Event()

    def work(number: int, queue: Queue) -> None:
        if number == 1:
            queue.turns.wait(others_run.is_set)
            raise StoppedError("no convergence", number)
        if number > 1:
            others_run.set()
            read_until_ended(queue)

    begun = watched(work)
    with pytest.raises(PeleError, match="conformation 2 of 9: no convergence"):
        energies_of(run, 9)
    assert {*begun} <= {0, 1, 2, 3, 4}  # one more per thread that became free


def test_the_error_is_that_of_the_first_set(run, watched):
    """Although a later one fails before it, so that equal calls raise equal errors."""
    second_failed = Event()

    def work(number: int, queue: Queue) -> None:
        if number == 0:
            queue.turns.wait(second_failed.is_set)
        else:
            second_failed.set()
        raise StoppedError(f"set {number}", number)

    watched(work)
    with pytest.raises(PeleError, match="conformation 1 of 5: set 0"):
        energies_of(run, 5)


def test_an_error_of_the_callback_ends_the_sets(run, watched):
    def stop(share: float) -> None:
        raise ZeroDivisionError

    begun = watched(lambda number, queue: read_until_ended(queue) if number else None)
    with pytest.raises(ZeroDivisionError):
        energies_of(run, 9, progress=stop)
    assert {*begun} <= {0, 1, 2, 3}


def test_refused_memory_ends_the_sets_and_frees_theirs(run, watched, monkeypatch):
    """Another call in the same process works afterwards."""
    own, expected = Device.require_memory, energies_of(run, 4)
    refused = list[int]()

    def require(device: Device, total: int, largest: int) -> None:
        if refused and threading.get_ident() == refused[0]:
            raise DeviceMemoryError("this needs 1 MiB")
        own(device, total, largest)

    def work(number: int, queue: Queue) -> None:
        if number == 1:
            refused.append(threading.get_ident())

    watched(work)
    monkeypatch.setattr(Device, "require_memory", require)
    with pytest.raises(DeviceMemoryError, match="this needs 1 MiB"):
        energies_of(run, 9)
    assert refused
    monkeypatch.undo()
    assert energies_of(run, 4) == expected


def test_turns_that_are_over_begin_nothing():
    turns = Turns()
    turns.is_over = True
    for _ in range(2):  # the first one leaves it to the second
        with pytest.raises(CancelledError), turns:
            raise AssertionError


def test_an_error_while_another_thread_has_the_turn(device, monkeypatch):
    """A failed command raises its error only after the thread has the turn again."""

    def fail(queue: Queue, event: object) -> bool:
        raise ZeroDivisionError

    turns = Turns()
    with turns, Queue(device, "float32", profile=False).independent_queue(turns) as queue:
        buffer = queue.send(np.arange(5))
        monkeypatch.setattr(Queue, "is_complete", fail)
        with pytest.raises(ZeroDivisionError):
            queue.download(buffer, 5)
        monkeypatch.undo()
        assert queue.download(buffer, 5).tolist() == [0, 1, 2, 3, 4]
    with turns:
        pass


def test_an_error_when_commands_are_submitted_leaves_no_thread_waiting():
    """Of two threads, one waits for the device, and the other one fails when it lets the first one run."""
    turns, waits, is_complete, ended = Turns(), Event(), Event(), list[str]()

    def wait() -> None:
        with turns:
            waits.set()
            turns.wait(is_complete.is_set)
        ended.append("waited")

    def fail() -> None:
        raise ZeroDivisionError

    with turns:
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        turns.wait(waits.is_set)
        is_complete.set()
        with pytest.raises(ZeroDivisionError):
            turns.offer(fail)
    thread.join(PATIENCE)
    assert ended == ["waited"]


@pytest.mark.parametrize("seed", range(4))
def test_one_thread_has_the_turn_and_all_have_it_again(seed):
    """Threads that wait, offer their turn, fail and are ended at random; nobody is left waiting."""
    turns, running, faults, done = Turns(), list[int](), list[str](), list[int]()

    def work(number: int) -> None:
        draw = random.Random(100 * seed + number)

        def check() -> None:
            running.append(number)
            time.sleep(draw.choice([0, 0, 1e-4]))
            if running != [number]:
                faults.append(f"{running} at once")
            running.pop()

        def fail() -> None:
            raise ZeroDivisionError

        for step in range(60):
            try:
                with turns:
                    check()
                    end = time.monotonic() + draw.random() * 2e-3
                    turns.wait(lambda end=end: time.monotonic() > end)
                    check()
                    turns.offer(draw.choice([fail, check, check]))
                    check()
                    turns.wait(draw.choice([fail, lambda: True]))
                    check()
            except (ZeroDivisionError, CancelledError):
                pass
            if number == 0 and step == 50 and seed % 2:
                turns.is_over = True
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(done) == [*range(5)]
    assert not faults


def test_calls_of_several_threads(run):
    """Each has the energies of a call alone, also when one of them fails."""
    expected = energies_of(run, 6)

    def fail(share: float) -> None:
        raise ZeroDivisionError

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(energies_of, run, 6) for _ in range(3)]
        failed = pool.submit(energies_of, run, 6, progress=fail)
        assert [each.result() for each in found] == [expected] * 3
        assert isinstance(failed.exception(), ZeroDivisionError)


@pytest.mark.skipif(not get_device().has_float64, reason="rows are solved at once on devices with float64")
def test_rows_on_two_grids(run):
    """Their coefficients are joined from buffers that are larger than needed."""
    finest = run.grids[-1]
    around = Grid(1.5 * finest.origin - 0.5 * finest.last, 2 * finest.spacing, finest.shape)
    for model in (PBModel(ions=(PBIon(1, 0.15), PBIon(-1, 0.15))), PBModel(surface="spl2")):
        nested = PoissonBoltzmann(run.atoms, model, grids=[around, finest], reaction=model.surface != "spl2")
        alone, together = ([each.energy_kt for each in nested.solve_frames(frames_of(run, 4), rows=n)] for n in (1, 2))
        assert together == alone


PROGRAM = """
import os, signal, sys, threading
import numpy as np
import pele_ocl
from pele_ocl.pb import plan

plan.sets_at_once = lambda device, n_nodes: 3
own, begun = plan.PoissonBoltzmann._solved_part, threading.Event()

def solved_part(of, problems, part, geometry, queue):
    if ENDLESS and part.start:
        buffer = queue.send(np.arange(5))
        begun.set()
        while True:
            queue.download(buffer, 5)
    begun.set()
    return own(of, problems, part, geometry, queue)

plan.PoissonBoltzmann._solved_part = solved_part
positions = np.random.default_rng(3).normal(size=(12, 3)) * 2.2
atoms = pele_ocl.Atoms(positions, np.linspace(-1, 1, 12), gb_radii=np.linspace(0.9, 2, 12))
run = pele_ocl.PoissonBoltzmann(atoms, spacing=1.5)
frames = np.linspace(1, 0.9, 8)[:, None, None] * positions

def solve():
    return [each.energy_kt for each in run.solve_frames(frames, rows=1)]
"""


def outcome(code: str, *, is_endless: bool) -> str:
    program = PROGRAM.replace("ENDLESS", str(is_endless)) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=4 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_sets():
    found = outcome(
        """
        def interrupt():
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        try:
            solve()
        except KeyboardInterrupt:
            for each in threading.enumerate():
                if each is not threading.current_thread():
                    each.join(60)
            print("interrupted", [each.name for each in threading.enumerate()])
        """,
        is_endless=True,
    )
    assert found == "interrupted ['MainThread']\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks")
def test_a_fork_while_sets_are_solved():
    """The child ends, or says that OpenCL does not survive a fork; the parent has its energies."""
    found = outcome(
        """
        expected, found = solve(), []
        begun.clear()
        solving = threading.Thread(target=lambda: found.append(solve()))
        solving.start()
        begun.wait()
        child = os.fork()
        if not child:
            try:
                solve()
            except pele_ocl.DeviceError as error:
                os.write(1, b"refused\\n" if "fork" in str(error) else b"another error\\n")
            sys.exit(3)  # as a child that ends usually, with all of Python's functions for the exit
        _, status = os.waitpid(child, 0)
        solving.join()
        print(os.waitstatus_to_exitcode(status), found == [expected])
        """,
        is_endless=False,
    )
    assert found == "refused\n3 True\n"
