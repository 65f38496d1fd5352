"""State file of an interrupted exploration: NumPy arrays and JSON, so that reading it cannot execute code."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..common.errors import FormatError
from ..common.inputfile import npz_arrays
from ..common.writing import replacing
from .control.blocks import AnmBlock, PeleParameters, PerturbationBlock
from .modes import Modes

_TREE = "tree"  # name of the array that contains the JSON text


class StateFile:
    """State file for dicts, lists, tuples, sets, numbers, strings, arrays, and objects of known dataclasses.

    known : dataclasses in addition to those of explorers
    """

    def __init__(self, path: Path, known: tuple[type, ...] = ()) -> None:
        self.path = path
        self._known: dict[str, type[Any]] = {
            each.__name__: each for each in (AnmBlock, PeleParameters, PerturbationBlock, Modes, *known)
        }

    def write(self, state: Mapping[str, Any]) -> None:
        """Write a state, replacing an earlier one."""
        arrays: dict[int, tuple[str, NDArray[Any]]] = {}
        tree = json.dumps(self._coded(dict(state), arrays))
        with replacing(self.path) as temporary, open(temporary, "wb") as stream:
            named: dict[str, Any] = {_TREE: np.frombuffer(tree.encode(), np.uint8), **dict(arrays.values())}
            np.savez(stream, **named)

    def read(self) -> dict[str, Any]:
        """Read the state. Raises FormatError for a damaged file, and for the pickles of earlier versions."""
        try:
            arrays = npz_arrays(self.path)
            state = self._decoded(json.loads(arrays[_TREE].tobytes()), arrays)
            if isinstance(state, dict):
                return state
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, FormatError):
            pass
        raise FormatError(
            f"{self.path}: is damaged, or from an earlier version that is no longer supported; start again "
            "without `resume`"
        )

    def _coded(self, value: Any, arrays: dict[int, tuple[str, NDArray[Any]]]) -> Any:
        """Convert a value to JSON data, and collect its arrays, each once."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            if array.dtype.hasobject:
                raise TypeError("arrays of objects cannot be written to a state")
            if isinstance(value, np.ndarray):
                return {"array": arrays.setdefault(id(value), (f"a{len(arrays)}", array))[0]}
            arrays[-1 - len(arrays)] = name, _ = f"a{len(arrays)}", array
            return {"scalar": name}
        if isinstance(value, Mapping):
            return {"dict": [[self._coded(k, arrays), self._coded(v, arrays)] for k, v in value.items()]}
        for kind in (list, tuple, set):
            if isinstance(value, kind):
                return {kind.__name__: [self._coded(each, arrays) for each in value]}
        name = type(value).__name__
        if self._known.get(name) is not type(value):
            raise TypeError(f"{name} cannot be written to a state")
        return {"object": name, "fields": {f.name: self._coded(getattr(value, f.name), arrays) for f in fields(value)}}

    def _decoded(self, value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
        """Convert JSON data and arrays back to a value; only objects of known classes are created."""
        if not isinstance(value, dict):
            return value
        if "object" in value:
            kind = self._known[value["object"]]
            names = {f.name for f in fields(kind)}
            own = {name: self._decoded(each, arrays) for name, each in value["fields"].items() if name in names}
            found: Any = object.__new__(kind)
            for name, each in own.items():
                if isinstance(each, np.ndarray) and kind is Modes:
                    each.flags.writeable = False
                object.__setattr__(found, name, each)
            return found
        ((kind_name, content),) = value.items()
        if kind_name == "array":
            return arrays[content].copy()
        if kind_name == "scalar":
            return arrays[content][()]
        if kind_name == "dict":
            return {self._decoded(k, arrays): self._decoded(v, arrays) for k, v in content}
        return {"list": list, "tuple": tuple, "set": set}[kind_name](self._decoded(each, arrays) for each in content)
