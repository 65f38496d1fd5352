"""Argument checks, which convert values to the required type or raise InputError."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from inspect import CO_VARARGS, signature
from itertools import islice
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from .errors import OTHER_LIBRARIES, InputError, KeywordError, UnexpectedKeywordError
from .errors import described as described
from .indices import is_group, text_within
from .modules import converted, settled, with_words
from .paths import file_path as file_path

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

MOST_INT32 = 2**31 - 1  # atom indices are int32 on the host and on devices


def is_finite(value: object) -> bool:
    """Return whether a value is a finite number."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond float64
        return False


def is_among(value: object, choices: Collection[str]) -> bool:
    """Return whether a value is one of the given strings; False for other types, including arrays."""
    return isinstance(value, str) and value in choices


def number(
    name: str,
    value: object,
    needed: str = "a finite number",
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
) -> float:
    """Convert to float. Raises InputError unless it is finite, from `least` to `most`, and greater than `above`."""
    found = float(value) if isinstance(value, Real) and is_finite(value) else math.nan
    if least <= found <= most and found > above:
        return found
    raise InputError(f"{name} is {described(value)}; expected {needed}")


def whole_number(name: str, value: object, *, least: int = 0, most: int = MOST_INT32) -> int:
    """Convert to int. Raises InputError unless it is an integer from `least` to `most`."""
    found = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if found is None or found < least:
        raise InputError(f"{name} is {described(value)}; expected a whole number, {least} or more")
    if found > most:
        raise InputError(f"{name} is {described(value)}; at most {most:,} is possible")
    return found


def flag(name: str, value: object) -> bool:
    """Convert to bool. Raises InputError for other types, including numbers and strings."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputError(f"{name} is {described(value)}; expected True or False")


def choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise InputError unless the value is one of the choices."""
    if not is_among(value, choices):
        raise InputError(f"{name} is {described(value)}; choose {' or '.join(map(repr, choices))}")


def instance(name: str, value: object, kind: type[T], needed: str) -> T:
    """Return the value. Raises InputError unless it is an instance of `kind`."""
    if isinstance(value, kind):
        return value
    raise InputError(f"{name} is {described(value)}; expected {needed}")


def text(name: str, value: object) -> str:
    """Return the value. Raises InputError unless it is a string."""
    return instance(name, value, str, "a text")


def texts(name: str, values: object) -> tuple[str, ...]:
    """Convert a list of strings to a tuple. Raises InputError for other values."""
    if not isinstance(values, tuple | list) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{name} are {described(values)}; expected a list of texts")
    return tuple(values)


def rows(name: str, values: object, needed: str, kind: type, least: int = 2, most: int = 3) -> list[Any]:
    """Convert to a list. Raises InputError unless each item is of type `kind`, or a list of `least` to `most` items."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise InputError(f"{name} is {described(values)}; expected a list")
    found = list(values)
    for each in found:
        if not isinstance(each, kind) and not (
            isinstance(each, tuple | list | np.ndarray) and np.ndim(each) == 1 and least <= len(each) <= most
        ):
            raise InputError(f"one of {name} is {described(each)}; expected {needed}")
    return found


def one_output(by_place: T, given: object) -> T:
    """Return an output given as a positional argument. Raises InputError if `output` is also given."""
    if given not in (None, ()):
        raise InputError(f"there are two outputs, {described(by_place)} and {described(given)}; give one as `output`")
    return by_place


def file_paths(name: str, values: object) -> tuple[str | PathLike[str], ...]:
    """Convert several paths to a tuple. Raises InputError for other values."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise InputError(f"{name} are {described(values)}; expected a list of paths")
    paths = tuple(values)
    for path in paths:
        file_path(path, f"one of {name}")
    return paths


def callback(name: str, value: object) -> None:
    """Raise InputError unless the value is None or callable."""
    if value is not None and not callable(value):
        raise InputError(f"{name} is {described(value)}; expected a function of one number, 0 to 1")


def array(name: str, values: object, kinds: str, needed: str) -> NDArray[Any]:
    """Convert to an array. Raises InputError unless its NumPy kind is in `kinds`, such as "iuf" for numbers.

    Empty arrays are accepted.
    """
    try:
        found = as_array(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:  # rows of different lengths; tensors of a GPU
        raise InputError(f"{name} are not an array of {needed}: {error}") from None
    if found.dtype.kind not in kinds and (found.size or found.ndim == 0):
        what = f"{found.dtype} values" if found.ndim else described(values)
        what = f"a value {what}" if what.startswith("of type") else what
        raise InputError(f"{name} are not an array of {needed}: could not convert {what}")
    return found


def atoms_chosen(name: str, values: object) -> NDArray[Any]:
    """Convert indices of atoms, a mask or an MDAnalysis group to an array, otherwise unchecked. Raises InputError."""
    if is_group(values):
        return np.asarray(values.atoms.indices)  # type: ignore[attr-defined]
    if isinstance(values, str):
        raise InputError(
            f"{name} are {described(values)}; expected indices or booleans: pele_ocl.selection(atoms, {values!r})"
        )
    return array(name, values, "iub", "indices or booleans")


def atoms_mask(name: str, values: object, n: int, of: str = "") -> NDArray[np.bool_]:
    """Convert a mask, indices or an MDAnalysis group to a mask (n,).

    of : object that contains the atoms, for messages, such as "row 3"

    Raises InputError for other values, and for masks of integers, which would be interpreted as indices.
    """
    chosen, mask = atoms_chosen(name, values), np.zeros(n, np.bool_)
    require_no_numbers_as_mask(name, chosen, n)
    try:
        mask[chosen if chosen.size else []] = True
    except IndexError:
        named, there = (f"{name} of {of}", "its atoms") if of else (name, f"{n} atoms")
        raise InputError(f"{named} are neither a mask of {there} nor indices of them") from None
    return mask


def require_no_numbers_as_mask(name: str, chosen: NDArray[Any], n: int) -> None:
    """Raise InputError for n integers 0 and 1, which are probably meant as a mask, not as indices."""
    if chosen.dtype.kind in "iu" and chosen.shape == (n,) and n > 2 and 0 <= chosen.min() <= chosen.max() <= 1:
        raise InputError(f"{name} are {n} numbers 0 and 1; a mask has booleans, such as values == 1")


def as_array(values: object) -> NDArray[Any]:
    """Convert to an array, without copying if possible, by the array protocol of NumPy or DLPack."""
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    return np.asarray(values)


def numbers(name: str, values: object) -> NDArray[np.float64]:
    """Convert to a float64 array of any shape, without copying if possible. Raises InputError."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        return values
    with np.errstate(over="ignore"):  # conversion of longer floats
        return array(name, values, "iuf", "numbers").astype(np.float64, copy=False)


def positions_of(values: object, name: str = "positions") -> NDArray[np.float64]:
    """Convert to positions (n, 3) in float64, which need not be finite. Raises InputError."""
    found = numbers(name, values)
    if found.ndim != 2 or found.shape[1] != 3:
        raise InputError(f"{name} have shape {found.shape}; expected (n, 3)")
    return found


def function(name: str, value: object) -> None:
    """Raise InputError unless the value is callable."""
    if not callable(value):
        raise InputError(f"{name} is {described(value)}; expected a function")


def _provenance(name: str, value: object) -> None:
    if not hasattr(value, "of_call"):
        raise InputError(f"{name} is {described(value)}; expected a pele_ocl.jobs.Provenance")


# Keywords with the same type in all checked functions.
_KINDS: dict[str, Callable[[str, Any], object]] = {
    **dict.fromkeys("strict per_residue neutralize keep_map nonlinear entropy resume overwrite field".split(), flag),
    "models": lambda name, value: choice(name, value, ("one", "all")),
    "errors": lambda name, value: choice(name, value, ("raise", "record")),
    "precision": text,
    **dict.fromkeys(
        "table folder compare decomposition residue_plot heat_map running_mean bfactor_pdb receptor_structure "
        "ligand_structure write_pairs reports plot".split(), lambda name, value: file_path(value, name),
    ),
    "progress": callback,
    **dict.fromkeys("watch tell show".split(), function),
    "provenance": _provenance,
}  # fmt: skip


# Keywords with a fixed set of lower-case values, which are case-insensitive.
_WORDS = frozenset(
    "gb like method precision variant integrator exchange trajectory_format trajectory_of one_four surface "
    "dielectric_surface born models errors combine scene solver charges boundary pka lcpo_unknown lcpo_rule radii "
    "kappa_convention gbn_convention default_radii image internal_dielectric protocol outside program equation".split()
)


def in_lower_case(words: Mapping[str, Any]) -> dict[str, Any]:
    """Convert case-insensitive values of keywords to lower case: `gb="OBC2"` becomes "obc2"."""
    return {
        name: of.lower() if name in _WORDS and isinstance(of, str) and not of.islower() else of
        for name, of in words.items()
    }


def checked(function: F) -> F:
    """Decorate a public function to reject unknown keywords, and values of a wrong type for those in `_KINDS`.

    None is always accepted. Calls raise InputError, or TypeError with a suggestion for a misspelled keyword.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    own = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    has_structure = "_structure" in vars(function)
    has_ligands = "ligands" in own or "reading" in vars(function).get("_groups", ())
    most = math.inf if code.co_flags & CO_VARARGS else len(names)

    @wraps(function)
    def checking(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) > 1 and _may_be_coordinates(checking, arguments, keywords):
            first, keywords = settled(checking, arguments[0], keywords, arguments[1])
            arguments = (first, *arguments[2 if "coordinates" in keywords else 1 :])
        if has_ligands and not _LIGAND_FILES.isdisjoint(keywords):
            keywords = _with_ligands(keywords)
        if (
            not own.issuperset(keywords)
            or len(arguments) > most
            or not keywords.keys().isdisjoint(names[: len(arguments)])
            or not (arguments or names[:1] == () or names[0] in keywords)
        ):
            _require_words(checking, arguments, keywords)
        if len(arguments) > 1:
            _refuse_input_by_place(checking, names, arguments, keywords)
        if not _WORDS.isdisjoint(keywords):
            keywords = in_lower_case(keywords)
        has_groups = False
        for name, value in (*zip(names, arguments, strict=False), *keywords.items()):
            if value is not None and name in _KINDS:
                _KINDS[name](name, value)
            has_groups = has_groups or (name in _SELECTIONS and _has_groups(value))
        first = arguments[0] if arguments else keywords.get(names[0]) if names else None
        if has_groups:
            arguments, keywords = _with_texts(first, names, arguments, keywords)
        is_control = isinstance(first, str | PathLike) and str(first).endswith(".conf")
        are_several = isinstance(first, list | tuple) and len(first) > 1
        if (is_control or are_several or "pele_conf" in keywords) and "_groups" in vars(checking):
            first, keywords = settled(checking, first, keywords)
            arguments, keywords = (first, *arguments[1:]), {of: keywords[of] for of in keywords if of != names[0]}
        if has_structure and are_objects(first):
            by_place = dict(zip(names[1:], arguments[1:], strict=False))
            first, keywords = converted(checking, first, by_place, keywords)
            arguments, keywords = (first, *arguments[1:]), {of: keywords[of] for of in keywords if of != names[0]}
        return function(*arguments, **keywords)

    return cast(F, checking)


def _may_be_coordinates(
    function: Callable[..., Any], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> bool:  # fmt: skip
    """Return whether the second of two paths may contain coordinates for the first, which were not given otherwise."""
    return (
        isinstance(arguments[0], str | PathLike)
        and isinstance(arguments[1], str | PathLike)
        and is_file_of_coordinates(arguments[1])
        and keywords.keys().isdisjoint(("coordinates", "trajectory", "reading"))
        and "coordinates" in signature(with_words(function)).parameters
    )


_LIGAND_FILES = frozenset(("ligand_file", "ligand_files"))  # aliases of `ligands`, as in the command line


def _with_ligands(keywords: dict[str, Any]) -> dict[str, Any]:
    """Rename aliases to `ligands`. Raises KeywordError if two of the names are used."""
    given = [name for name in ("ligands", *_LIGAND_FILES) if name in keywords]
    if len(given) > 1:
        raise KeywordError(f"`{given[0]}` and `{given[1]}` are names of the same keyword; give one of them")
    return {"ligands" if name in _LIGAND_FILES else name: value for name, value in keywords.items()}


def listed_ligands(given: Any) -> tuple[Any, ...]:
    """Return one or several paths, Ligands, Mols or molecules as a tuple. Raises InputError for other values."""
    if given is None:
        return ()
    if isinstance(given, str | PathLike) or is_object(given) or hasattr(given, "lj_sigma"):  # Atoms have lj_sigma
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, Mapping | np.ndarray):
        raise InputError(f"ligands are {described(given)}; expected files, Ligands, Mols of RDKit or Atoms")
    return tuple(given)


_SELECTIONS = frozenset("select freeze ligand receptor strip at at_atoms align alanine".split())


def _has_groups(value: object) -> bool:
    """Return whether this is an MDAnalysis group, or a list that contains one."""
    return is_group(value) or (isinstance(value, list | tuple) and any(map(is_group, value)))


def _with_texts(
    structure: object, names: tuple[str, ...], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Convert selections given as MDAnalysis groups to strings for the structure."""

    def text(name: str, value: Any) -> Any:
        if name not in _SELECTIONS or not _has_groups(value):
            return value
        if is_group(value):
            return text_within(name, value, structure)
        return [text_within(name, of, structure) if is_group(of) else of for of in value]

    named = {name: text(name, value) for name, value in keywords.items()}
    return (arguments[0], *map(text, names[1:], arguments[1:])) if arguments else arguments, named


def is_object(value: object) -> bool:
    """Return whether this is a molecule object of another library, including derived classes; a Ligand; or a result."""
    kind = type(value)
    libraries = {of.__module__.partition(".")[0] for of in kind.__mro__}
    is_own = hasattr(kind, "parametrize") or hasattr(kind, "as_structure")
    return is_own or not libraries.isdisjoint(OTHER_LIBRARIES)


def are_objects(value: object) -> bool:
    """Return whether this is an object of another library, or a list that contains one."""
    return is_object(value) or (isinstance(value, list | tuple) and any(map(is_object, value)))


_WORD_OF_SUFFIX = {  # keywords of input files given without one; other files are outputs
    **dict.fromkeys("rst7 crd inpcrd ncrst rst".split(), "coordinates"),
    **dict.fromkeys("nc dcd xtc trr mdcrd".split(), "trajectory"),
}
_NEVER_WRITTEN = ("gro",)  # structure formats that cannot be written


def word_of_file(path: object) -> str | None:
    """Return the keyword for a file by its suffix, "coordinates" or "trajectory"; None for other files."""
    return _WORD_OF_SUFFIX.get(str(path).rpartition(".")[2].lower())


def is_file_of_coordinates(path: object) -> bool:
    """Return whether a path is an existing file with only coordinates, to be used with a topology."""
    suffix = str(path).rpartition(".")[2].lower()
    return (word_of_file(path) == "coordinates" or suffix in _NEVER_WRITTEN) and Path(str(path)).is_file()


_OF_FRONT_ENDS = ("call", "keep")  # keywords omitted from signatures
_STRUCTURES = ("structure", "topology", "pdb", "path", "file", "filename", "molecule", "protein", "receptor", "top")


def _require_words(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Raise TypeError for invalid arguments, with advice on how to call the function."""
    parameters, name = signature(with_words(function)).parameters, function.__name__
    first = next(iter(parameters))
    if not arguments and first not in keywords:
        for word in _STRUCTURES:
            if word in keywords and (word == "topology" or word not in parameters):
                raise TypeError(f"{name}() takes {first!r} first: {name}({keywords.get(word)!r}, ...)")
    takes_any = any(of.kind is of.VAR_KEYWORD for of in parameters.values())
    for word in keywords:
        of_front_ends = word in _OF_FRONT_ENDS and "_groups" in vars(function)
        if word not in parameters and not of_front_ends and not takes_any:
            raise UnexpectedKeywordError(word, parameters, name)
    for word, value in zip(parameters, arguments, strict=False):
        if word in keywords:
            meant = word_of_file(value)
            rest = f"name the one, as in {meant}={described(value)}" if meant in parameters else "give it once"
            raise TypeError(f"{name}() has {word!r} twice, {described(value)} and {described(keywords[word])}; {rest}")
    n = sum(of.kind is of.POSITIONAL_OR_KEYWORD for of in parameters.values())
    if len(arguments) > n:
        needed = [of.name for of in parameters.values() if of.kind is of.KEYWORD_ONLY and of.default is of.empty]
        word = next(iter([*(of for of in needed if of not in keywords), word_of_file(arguments[n]) or "output"]))
        is_text = isinstance(arguments[n], str | PathLike)
        by_name = f", as in {word}={described(arguments[n])}" if word in parameters and is_text else ""
        raise TypeError(
            f"{name}() takes {n} positional argument{'' if n == 1 else 's'}; pass the others by keyword{by_name}"
        )


def several_structures(paths: Iterable[object]) -> KeywordError:
    """Return the error for several structures given together with a trajectory or `models='all'`.

    Some may be trajectories themselves, because a shell expands patterns.
    """
    for path in map(str, paths):
        if word_of_file(path) == "trajectory":
            return KeywordError(
                f"{path} is a trajectory instead of a structure; quote patterns, or the shell replaces "
                f"them by file names: `trajectory='{Path(path).with_name(f'*{Path(path).suffix}')}'`"
            )
    return KeywordError("a trajectory, or all models, need a single structure; give one file")


_TABLES = frozenset("csv json jsonl h5 html".split())
_MOLECULES = frozenset("pdb cif sdf mol2 mol smi".split())


def _suffix(path: object) -> str:
    return str(path).rpartition(".")[2].lower()


def _is_file_name(value: object) -> bool:
    """Return whether this is a path, or a string that is a file name rather than a selection."""
    known = _suffix(value) in _TABLES | _MOLECULES or word_of_file(value) is not None
    return isinstance(value, PathLike) or (
        isinstance(value, str) and " " not in value.strip() and "." in value and known
    )


def _refuse_input_by_place(
    function: Callable[..., Any], names: Sequence[str], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> None:
    """Raise TypeError for a coordinate file or trajectory as a positional argument other than the first.

    In the position of the output, it is accepted if coordinates or a trajectory are also given by keyword.
    """
    for name, value in islice(zip(names, arguments, strict=False), 1, None):
        word = word_of_file(value) if isinstance(value, str | PathLike) else None
        if name in _SELECTIONS and _is_file_name(value):
            own = [of for of in ("output", "ligands") if of in signature(with_words(function)).parameters]
            meant = word or ("output" if _suffix(value) in _TABLES else own[-1] if own else "")
            way = f"; pass the file as {meant}={described(value)}" if meant else ""
            raise TypeError(
                f"{function.__name__}() expects the {name} at this position, a selection such as 'resname LIG'{way}"
            )
        if name == "output" and word is None and str(value).rpartition(".")[2].lower() in _NEVER_WRITTEN:
            word = "coordinates"
        if word is None or word == name or word not in signature(with_words(function)).parameters:
            continue
        if name == "output" and word in keywords:
            continue
        if name == "output":
            raise TypeError(
                f"{function.__name__}() takes the output second; pass the file as {word}={described(value)} "
                f"to read it, or as output={described(value)} to write it"
            )
        raise TypeError(
            f"{function.__name__}() expects {name!r} at this position; pass the file as {word}={described(value)}"
        )


def former_keywords(**names: str) -> Callable[[F], F]:
    """Decorate a function to accept deprecated keywords for one release, with a DeprecationWarning.

    names : current name by deprecated name

    Calls raise InputError if a keyword is given by both names.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def renamed(*arguments: Any, **keywords: Any) -> Any:
            for former in names.keys() & keywords.keys():
                name = names[former]
                if name in keywords:
                    raise InputError(f"`{former}` is the former name of `{name}`; give one of them")
                warnings.warn(
                    f"{former} is now {name}; the former name will be removed in the next release", DeprecationWarning,
                    stacklevel=2,
                )  # fmt: skip
                keywords[name] = keywords.pop(former)
            return function(*arguments, **keywords)

        return cast(F, renamed)

    return decorate
