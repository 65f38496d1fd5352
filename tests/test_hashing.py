"""Hashes by which an interrupted run recognizes its inputs: different for different values, equal in all processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from pele_ocl import InputError
from pele_ocl.common.hashing import Hashed, sha256_of


def scaled(x: float) -> float:
    return 2 * x


def squared(x: float) -> float:
    return x * x


class Plain:
    def __init__(self, value: object) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


@dataclass
class Record:
    value: object


@dataclass
class OtherRecord:
    value: object


class Pull(Hashed):
    """Term of a user that is no dataclass."""

    names: ClassVar[Any] = ("pull",)

    def __init__(self, *values: object) -> None:
        self.values = values


class SlottedPull(Pull):
    __slots__ = ("more",)

    def __init__(self, *values: object, more: object = None) -> None:
        super().__init__(*values)
        self.more = more


def different() -> list[object]:
    """Return values that all differ, created at each call."""
    values: list[object] = [
        (1, 23), (12, 3), (123,), ((1, 2), 3), (1, (2, 3)), ((1, 2, 3),), (), ((),), "1", 1, 1.0, "(1, 23)",
        {"a": 12}, {"a1": 2}, {"a": 1, "b": 2}, {"a": {"b": 1}}, {1: 2}, {"1": 2}, {}, {"a", "b", "c"}, {"a", "bc"},
        np.array([1, 2]), np.array([[1, 2]]), np.array([1.0, 2.0]), np.array([1, 2], object), np.float32(1),
        None, True, b"1", Path("a"), "a", range(3), slice(3), complex(1, 2),
        scaled, squared, partial(scaled, 1), partial(squared, 1), partial(scaled, 2), np.sqrt, np.exp, len, int, float,
    ]  # fmt: skip
    holders = (Plain, Slotted, Record, OtherRecord, Pull)
    return [*values, *(hold(value) for hold in holders for value in (1, 2, (1, 23), (12, 3), scaled, squared))]


def test_different_values_have_different_hashes():
    values = different()
    hashes = [sha256_of(value) for value in values]
    for (k, one), (m, other) in combinations(enumerate(hashes), 2):
        assert one != other, (values[k], values[m])


def test_equal_values_have_equal_hashes():
    assert [*map(sha256_of, different())] == [*map(sha256_of, different())]
    assert sha256_of({"a": 1, "b": 2}) == sha256_of({"b": 2, "a": 1})


def test_hashes_are_the_same_in_another_process():
    """With other addresses, and another order of sets."""
    code = "import test_hashing as here; print(*map(here.sha256_of, here.different()))"
    folder = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(folder.parent)])}
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment | {"PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert done.stdout.split() == [sha256_of(value) for value in different()]


def test_slots_of_a_term_count():
    assert sha256_of(SlottedPull(1, more=2)) != sha256_of(SlottedPull(1, more=3))
    assert sha256_of(SlottedPull(1, more=2)) == sha256_of(SlottedPull(1, more=2))


def recursive() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


def closure(k: float) -> Any:
    def force(x: float) -> float:
        return k * x

    return force


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (lambda x: x, "the function <lambda>; define it with a name"),
        (closure(1), "the function closure.<locals>.force"),
        ((k for k in ()), "a value of type generator"), (recursive(), "contains itself"),
        (threading.Lock(), "a value of type lock"),
    ],
)  # fmt: skip
def test_what_another_process_cannot_have_is_refused(value, sentence):
    for held in (value, Plain(value), Record(value), Pull(value), [value], {"a": value}, partial(scaled, value)):
        with pytest.raises(InputError, match=sentence):
            sha256_of(held)
