"""Damaged tuning files: one warning of one line or a sound reading, never a raw error; and several processes at one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import DEVICES

from pele_ocl import FormatError
from pele_ocl.bench.tune import VARIANTS
from pele_ocl.plan import tuning
from pele_ocl.plan.tuning import RULES, SIZES, BestChoice, Choice, Entry, TuningWarning, choices_for, store
from pele_ocl.plan.tuning.findings import as_json, versions

DEVICE = DEVICES[0]
MUTATIONS = int(os.environ.get("PELE_OCL_FUZZ", "200"))
SIZE = 1000
# Values that JSON can hold and a tuning file must not, and some that it may.
VALUES = (
    "1e400", "-1e400", "Infinity", "-Infinity", "NaN", "32.0", "1e3", "-1", "0", "true", "null", '""', '"x"', "[]",
    "{}", "[[1]]", '{"tile": 32}', "9" * 5000, "-" + "9" * 5000, "1" * 19, "1e-320", '"\\u001b[2J"', '"\\ud800"',
    "[" * 3000 + "]" * 3000, '{"a":' * 2000 + "1" + "}" * 2000, '"' + "x" * 10000 + '"', "16", "[8, 4]", '"energy"',
)  # fmt: skip
BYTES = (b"\xff", b"\xfe\x00", b"\x00", b"\xc3\x28", b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"9", b"e")


def remembered(quantity: str, size: int = SIZE) -> Choice:
    return tuning.remembered(quantity, VARIANTS[quantity], DEVICE, "float32", size)


def sound() -> Entry:
    """An entry of the device with a choice for every quantity, in both precisions."""
    version, kernels = versions()
    found = [
        BestChoice(quantity, precision, SIZE, choices_for(VARIANTS[quantity], DEVICE, precision, SIZE)[0], 1.0, 1.5)
        for quantity in SIZES
        for precision in ("float32", "float64")
    ]
    return Entry(DEVICE.name, DEVICE.platform, DEVICE.driver, version, kernels, "2026-11-22", tuple(found))


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A sound tuning file of the test's own."""
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("PELE_OCL_TUNING", str(path))
    store.remember(sound())
    return path


def damaged(good: bytes, rng: random.Random) -> bytes:
    """A file with one to three things changed: values, bytes, pieces cut out, doubled or moved."""
    content = bytearray(good)
    for _ in range(rng.randint(1, 3)):
        at, length = rng.randrange(len(content)), rng.randrange(1, 200)
        match rng.randrange(5):
            case 0:  # another value after a colon
                colons = [k for k, byte in enumerate(content) if byte == ord(":")]
                start = rng.choice(colons) + 1 if colons else at
                end = next((k for k in range(start, len(content)) if content[k] in b",}\n"), len(content))
                content[start:end] = rng.choice(VALUES).encode()
            case 1:
                content[at : at + rng.randrange(2)] = rng.choice(BYTES)
            case 2:
                del content[at : at + length]
            case 3:
                content[at:at] = content[at : at + length]
            case 4:
                other = rng.randrange(len(content))
                content[at : at + length] = content[other : other + length]
        if not content:
            return b""
    return bytes(content)


def test_damaged_files_are_one_warning_or_sound_choices(file):
    good, rng = file.read_bytes(), random.Random(1)
    refused = 0
    for number in range(MUTATIONS):
        file.write_bytes(damaged(good, rng))
        store._read.cache_clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for quantity in SIZES:
                choice = remembered(quantity)
                offered = choices_for(VARIANTS[quantity], DEVICE, "float32", SIZE)
                assert choice == RULES or repr(choice) in map(repr, offered), number  # 32.0 == 32, but not its repr
            assert tuning.describe(DEVICE).isprintable()
        assert [w.category for w in warned] in ([], [TuningWarning]), number
        assert all(str(w.message).startswith(str(file)) for w in warned)
        assert all(str(w.message).isprintable() and len(str(w.message)) < 1000 for w in warned), number
        refused += len(warned)
        if number % 20 == 0:  # what is damaged is written anew
            store.remember(sound())
            assert set(sound().findings) <= {f for entry in store.entries() for f in entry.findings}, number
    assert MUTATIONS / 3 < refused < MUTATIONS


NOWHERE = ("1e400", "-Infinity", "NaN", "-1", "true", "null", '"x"', '{"a": 1}', "9" * 5000, "[" * 3000 + "]" * 3000)


@pytest.mark.parametrize("value", NOWHERE, ids=lambda value: value[:9])
@pytest.mark.parametrize("name", ["ms", "size", "tile"])
def test_values_that_fit_nowhere_are_not_taken(file, name, value):
    put(file, name, value)
    with pytest.warns(TuningWarning, match="not a valid tuning file "):
        assert remembered("energy") == RULES


@pytest.mark.parametrize("name", ["size", "tile"])
def test_a_count_is_a_whole_number(file, name):
    put(file, name, "32.0")
    with pytest.warns(TuningWarning, match="not a whole number"):
        assert remembered("energy", 32) == RULES


def put(file: Path, name: str, value: str) -> None:
    """Leave one finding in the file, with another value of a field or of a setting of its choice."""
    content = json.loads(file.read_text())
    (device,) = content["devices"]
    row = next(row for row in device["findings"] if row["quantity"] == "energy")
    (row["settings"] if name == "tile" else row)[name] = "HERE"
    device["findings"] = [row]
    file.write_text(json.dumps(content).replace('"HERE"', value))
    store._read.cache_clear()


@pytest.mark.parametrize("kind", ["fifo", "large"])
def test_files_that_do_not_end_or_are_too_large(file, kind):
    if kind == "fifo":
        file.unlink()
        os.mkfifo(file)
    else:
        os.truncate(file, store.LARGEST_FILE + 1)
    store._read.cache_clear()
    with pytest.warns(TuningWarning, match="regular file" if kind == "fifo" else "larger than 16 MiB"):
        assert remembered("energy") == RULES


# Several processes

WRITER = """
import sys
from pele_ocl.plan.tuning import RULES, BestChoice, Entry, store
from pele_ocl.plan.tuning.findings import as_json, versions
number = int(sys.argv[1])
store.entries()  # as `auto` reads it before anything is measured
print(flush=True)
sys.stdin.readline()
for k in range(10):
    found = BestChoice("energy", "float32", 1 + 100 * number + k, RULES, 1.0, 1.0)
    store.remember(Entry("shared" if number % 2 else f"own {number}", "p", "d", *versions(), "2026-11-22", (found,)))
"""


def child(code: str, *args: object) -> subprocess.Popen[str]:
    """A Python process that prints a line when it is ready, and then waits for one."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_processes_that_tune_at_once_keep_each_others_findings(tmp_path, monkeypatch):
    monkeypatch.setenv("PELE_OCL_TUNING", str(tmp_path / "tuning.json"))
    writers = [child(WRITER, number) for number in range(4)]
    assert [writer.stdout.readline() for writer in writers] == ["\n"] * 4
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=60) and writer.returncode for writer in writers] == [0] * 4
    sizes = {finding.size for entry in store.entries() for finding in entry.findings}
    assert sizes == {1 + 100 * number + k for number in range(4) for k in range(10)}
    assert sorted(entry.device for entry in store.entries()) == ["own 0", "own 2", "shared"]
    assert {path.name for path in tmp_path.iterdir()} == {"tuning.json", "tuning.json.lock"}


HOLDER = """
import os
from pele_ocl.plan.tuning import store
with store._locked():
    print(flush=True)
    input()
"""


def test_the_lock_of_a_killed_process_is_free_and_of_a_stopped_one_is_a_sentence(file, monkeypatch):
    holder = child(HOLDER)
    assert holder.stdout.readline() == "\n"
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.2)
    with pytest.raises(FormatError, match=r"another process has held .*\.lock for 0\.2 s"):
        store.remember(sound())
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    start = time.monotonic()
    store.remember(sound())
    assert store.forget()
    assert time.monotonic() - start < 5
    assert not Path(file).exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_a_sentence(file):
    file.parent.chmod(0o500)
    try:
        with pytest.raises(FormatError, match="permission"):
            store.remember(sound())
    finally:
        file.parent.chmod(0o700)


def test_what_was_remembered_before_is_read_again(file):
    """Also where this process has read the file, and another has written since."""
    store.entries()
    other = replace(sound(), device="other")
    content = json.loads(file.read_text())
    content["devices"].append(as_json(other))
    file.write_text(json.dumps(content))
    store.remember(sound())
    assert [entry.device for entry in store.entries()] == ["other", DEVICE.name]
