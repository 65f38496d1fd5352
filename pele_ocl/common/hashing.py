"""Hashes of values and files, used to recognize the inputs of an interrupted run."""

from __future__ import annotations

import copyreg
import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType
from typing import Any, Protocol

import numpy as np

from .errors import InputError, described

_ENDS = 1 << 20  # bytes hashed at the beginning and the end of a file


# Objects whose text is their value, also in another process.
_WORDS = type(None), bool, int, float, complex, str, bytes, Enum, PurePath, range, slice, np.dtype
_FUNCTIONS = type, FunctionType, BuiltinFunctionType
_MAIN = {"__mp_main__": "__main__"}  # name of the main module in processes of multiprocessing


def sha256_of(value: object) -> str:
    """Return the SHA-256 of a value, such as Atoms or energy terms, without labels and notes.

    Equal values have equal hashes in all processes. Functions and classes are hashed by their names, as in pickle, and
    other objects by what pickle stores. The code of functions and classes is not hashed.

    Raises InputError for values that pickle cannot store either, such as lambdas, functions within functions, and
    generators, because they cannot be recognized in another process.
    """
    digest = hashlib.sha256()
    _add(digest, value, ())
    return digest.hexdigest()


class Hashed(ABC):
    """Base class of energy terms, which are hashed by their names and all attributes."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]: ...


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _add(digest: _Digest, value: object, within: tuple[int, ...]) -> None:
    """Add a value to a digest, with its type or delimiters, so that different values do not have the same bytes.

    within : ids of the objects that contain the value
    """
    if id(value) in within:
        raise InputError(f"a value {described(value)} contains itself, so that another run cannot recognize it")
    inner = (*within, id(value))
    if isinstance(value, Hashed):  # energy terms defined by users need not be dataclasses
        digest.update(f"{_name_of(type(value))} {value.names}".encode())
        _add(digest, _fields(value) if is_dataclass(value) else _attributes(value), inner)
    elif is_dataclass(value) and not isinstance(value, type) and type(value).__reduce__ is object.__reduce__:
        digest.update(type(value).__qualname__.encode())
        _add(digest, _fields(value), inner)
    elif isinstance(value, Mapping):
        items = sorted((sha256_of(key), item) for key, item in value.items()) if value else []
        _add_each(digest, b"{", [part for pair in items for part in pair], inner)
    elif isinstance(value, set | frozenset):
        _add_each(digest, b"(", sorted(map(sha256_of, value)), inner)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list | np.ndarray):
        _add_each(digest, b"[", value, inner)
    elif isinstance(value, _WORDS):
        digest.update(repr(value).encode())
    elif isinstance(value, _FUNCTIONS):
        digest.update(_name_of(value).encode())
    else:
        _add_each(digest, b"<", _stored(value), inner)


def _add_each(digest: _Digest, begin: bytes, values: Iterable[object], within: tuple[int, ...]) -> None:
    digest.update(begin)
    for value in values:
        _add(digest, value, within)
        digest.update(b",")
    digest.update(b";")


def _name_of(value: Any) -> str:
    """Return the module and name of a class or function. Raises InputError if it is not found by them."""
    name, module = value.__qualname__, value.__module__ or "builtins"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value and not isinstance(value, type):
        raise InputError(
            f"another run cannot recognize the function {name}; define it with a name at the top level of a module"
        )
    return f"{_MAIN.get(module, module)}.{name}"


def _stored(value: object) -> tuple[object, ...]:
    """Return the state of an object that pickle stores."""
    reduce = copyreg.dispatch_table.get(type(value))
    try:
        found = value.__reduce_ex__(2) if reduce is None else reduce(value)
    except Exception as error:
        raise InputError(f"another run cannot recognize a value {described(value)}: {error}") from error
    parts = found if isinstance(found, tuple) else (found,)
    return tuple(list(part) if isinstance(part, Iterator) else part for part in parts)


def _attributes(value: object) -> dict[str, object]:
    """Return the attributes of an object by name, including those in slots."""
    slots = [name for kind in type(value).__mro__ for name in _listed(getattr(kind, "__slots__", ()))]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})


def _listed(names: str | Iterable[str]) -> list[str]:
    return [name for name in ([names] if isinstance(names, str) else names) if name not in ("__dict__", "__weakref__")]


def _fields(value: Any) -> dict[str, object]:
    """Return the fields of a dataclass that affect energies, by name."""
    names = ("labels", "notes", "cell_angles", "forcefield", "default_radii", "rule")
    return {f.name: getattr(value, f.name) for f in fields(value) if f.name not in names}


def content_of(path: Path) -> list[tuple[object, ...]]:
    """Return `size_and_ends` of a file, or of all files in a folder with their names; [] if there are none."""
    if path.is_file():
        return [size_and_ends(path)]
    return [(str(of.relative_to(path)), *size_and_ends(of)) for of in sorted(path.rglob("*")) if of.is_file()]


def size_and_ends(path: Path) -> tuple[int, str]:
    """Return the size of a file, and the SHA-256 of its first and last MiB."""
    with open(path, "rb") as stream:
        head = stream.read(_ENDS)
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _ENDS))
        return size, hashlib.sha256(head + stream.read(_ENDS)).hexdigest()
