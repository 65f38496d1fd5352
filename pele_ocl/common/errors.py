"""Errors and warnings of pele-ocl.

Each message is one sentence with the file, line or atom concerned, and advice. The command line prints it after
``Error:`` and exits with code 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

MOST_NEAR = 0.6  # smallest similarity of a suggested name
INTERRUPTED = 130  # exit code after Ctrl-C, as in shells
_LONGEST = 4_000  # characters per message
_LONGEST_VALUE = 80  # characters of a value in a message


# Names used by OpenMM, MDAnalysis, MDTraj, AMBER and APBS. The first one available in an object is suggested.
_ELSEWHERE = {
    "run": "step integrate",
    "gb": "solvent implicit_solvent implicitsolvent gb_model gbmodel solvent_model igb",
    "ionic_strength": "salt saltcon salt_conc salt_concentration concentration",
    "forcefield": "ff force_field", "select": "selection sel atom_selection select_atoms",
    "cutoff": "nonbonded_cutoff nonbondedcutoff cut", "device": "platform gpu", "tolerance": "tol",
    "max_iterations": "steps max_steps maxsteps n_steps nsteps max_iter maxiter maxcyc",
    "steps": "n_steps nsteps num_steps nstlim step", "replicas": "n n_replicas nreplicas num_replicas explorers",
    "timestep": "dt time_step step_size stepsize", "temperatures": "temp temperature",
    "report_every": "report_interval reportinterval stride ntwx save_every every",
    "trajectory_format": "format trajectory", "frames": "stride step start stop first last interval",
    "output": "out outfile output_file outdir out_dir filename html png_file map dx",
    "trajectory": "traj trajectories frames_file dcd xtc nc", "workers": "n_jobs njobs processes nproc n_workers cpus",
    "explorers": "n n_explorers num_explorers walkers replicas n_replicas", "spacing": "grid_spacing resolution dime",
    "solute_dielectric": "pdie epsin indi interior_dielectric solutedielectric",
    "solvent_dielectric": "sdie epsout exdi exterior_dielectric solventdielectric",
    "dielectric_surface": "srfm", "scene": "pymol chimerax vmd", "map": "potential values grid", "ligand": "lig",
    "ligands": "ligand lig",
    "moving_radius": "radius", "ph": "pH", "unit": "units", "color_max": "vmax range",
    "gradient": "forces force", "total": "total_energy potential_energy final_energy dg delta_g deltag mean energy",
    "solvation": "solvation_energy total", "energy": "delta terms energies", "to_json": "to_dict as_dict asdict dict",
    "to_dataframe": "dataframe df to_pandas pandas as_dataframe to_frame",
    "table": "energies energy positions", "states": "energies energy",
    "trajectories": "positions xyz coordinates", "read": "load open parse atoms molecule",
    "save": "write to_csv export",
    "evaluate": "run compute calculate calc get_energy energy", "minimize": "run relax optimize minimise",
    "complex_topology": "cp cprmtop", "receptor_topology": "rp", "ligand_topology": "lp", "solvated_complex": "sp",
    "keep_hetero": "keep keep_ligand keep_ligands ligand ligands ligand_file hetero heterogens keepheterogens",
    "refine": "run dock", "score": "scores best energies", "positions": "coordinates xyz",
    "iterations": "steps n_steps nsteps nit niter", "energies": "delta",
}  # fmt: skip

_COUNTS = ("n_atoms", "natoms", "n_frames", "n_poses", "size", "count")  # equivalent to len()


def meant(word: str, known: Iterable[str]) -> str:
    """Suggest a known name: the equivalent of a name in other programs, or a similar one; "" for none.

    >>> meant("salt", ["ionic_strength", "select"])
    "; did you mean 'ionic_strength'?"
    >>> meant("complex", ["complex_topology", "mutant_complex"])
    "; did you mean 'complex_topology'?"
    """
    from difflib import get_close_matches  # not needed by `import pele_ocl`

    names = dict.fromkeys(known)
    near = [of for of, words in _ELSEWHERE.items() if of in names and word.lower() in words.lower().split()]
    near = near or [name for name in names if name.startswith(f"{word}_")]
    near = near or get_close_matches(word, sorted(names), 1, MOST_NEAR)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Nothing:
    """Object without attributes, to prevent suggestions by Python."""

    def __dir__(self) -> list[str]:
        return []


def no_attribute(of: str, name: str, known: Iterable[str] = (), hint: str = "") -> AttributeError:
    """Return the error for a missing attribute, with a hint that excludes private attributes.

    of : the object, such as "module 'pele_ocl'"; known : its attributes, of which public ones are suggested
    hint : replaces the suggestion
    """
    if not hint and not name.startswith("_"):
        hint = meant(name, (word for word in known if not word.startswith("_")))
    return AttributeError(f"{of} has no attribute {name!r}{hint}", name=name, obj=_Nothing())


class Suggests:
    """Mixin that adds suggestions to AttributeError."""

    if not TYPE_CHECKING:  # a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            counts = name in _COUNTS and hasattr(kind, "__len__")
            hint = "; len() of it gives their number" if counts else _within(vars(self), name)
            raise no_attribute(f"{kind.__name__!r} object", name, {*dir(kind), *vars(self)}, hint)


def _within(values: Mapping[str, object], name: str) -> str:
    """Suggest a public attribute whose value has an attribute of this name; "" for none."""
    found = (of for of, value in values.items() if name in getattr(type(value), "__dataclass_fields__", ()))
    part = next((of for of in found if not of.startswith("_")), "")
    return f"; did you mean '{part}.{name}'?" if part else ""


class UnexpectedKeywordError(TypeError):
    """An unknown keyword of a function. known : valid keywords in addition to its signature"""

    def __init__(self, word: str, known: Iterable[str], function: str = "") -> None:
        self.word, self.known = word, tuple(known)
        of = f"{function}() got an " if function else ""
        super().__init__(f"{of}unexpected keyword argument {word!r}{meant(word, self.known)}")


def printable(text: str) -> str:
    """Escape control characters and unprintable characters, such as `\\x1b`, except line ends.

    It is applied to names from files and paths before they are printed.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str) -> str:
    """Remove the middle of an excessively long message, which may quote the content of a damaged file."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} ... {len(text) - _LONGEST:,} more characters ... {text[-_LONGEST // 2 :]}"


_KEYWORD = re.compile(r"`([a-z][a-z0-9_]*)(?:=([^`]+))?`")


def worded(text: str, spell: Callable[[str, str | None], str | None]) -> str:
    """Replace the keywords in a message by their names in a front end.

    text : with keywords in backquotes, optionally with a value: "choose one with `model`", "give `models='all'`"
    spell : function that returns the text for a keyword and its value or None; None leaves it unchanged

        >>> worded("continue with `resume=True`", lambda name, value: f"--{name}")
        'continue with --resume'
    """
    return _KEYWORD.sub(lambda found: spell(found[1], found[2]) or found[0], text)


def described(value: object) -> str:
    """Describe a value for messages: a number, a string or a path, shortened if it is long; otherwise its type.

    >>> described(3.0), described("a"), described([1])
    ('3', "'a'", 'of type list')
    """
    if isinstance(value, bool) or type(value).__name__ == "bool_":  # np.bool_; NumPy is not imported here
        return str(value)
    if isinstance(value, Real):
        try:
            return f"{float(value):g}"
        except OverflowError:
            return "a very large number"
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        few = _LONGEST_VALUE // 4
        value = f"{value[:few]}...{value[-3 * few :]}"  # the end of a path is most informative
    if value is None or isinstance(value, str):
        return repr(value)
    if isinstance(value, PathLike) and type(value).__module__.startswith("pathlib"):
        return described(str(value))
    if hasattr(value, "value_in_unit"):  # of openmm.unit
        return f"{value}, with a unit (give the number alone)"
    return f"of type {type(value).__name__}{_way_of(value)}"


_READ = "pele_ocl.read reads it as Atoms"
# Other libraries: an attribute of objects that `read` can convert, and advice for other objects.
OTHER_LIBRARIES = {
    "MDAnalysis": ("atoms", "give its Universe"),
    "parmed": ("coordinates", ""),
    "ase": ("positions", ""),
    "openmm": ("topology", "pele_ocl.from_openmm converts a Topology, a System and positions to Atoms"),
    "pdbfixer": ("topology", ""),
    "rdkit": ("GetConformers", ""),
    "mdtraj": ("xyz", ""),
}


def _way_of(value: object) -> str:
    """Return advice on how to pass an object of another library, or a result; "" for other objects."""
    library = type(value).__module__.partition(".")[0]
    if library in OTHER_LIBRARIES:
        attribute, other = OTHER_LIBRARIES[library]
        way = _READ if hasattr(value, attribute) else other
        return f" ({way})" if way else ""
    return ", which its `save` writes to a file" if hasattr(value, "save") and hasattr(value, "to_json") else ""


class PeleError(Exception):
    """Base class of all errors that a user can cause or fix. The text has a limited length and is safe for terminals.

    message : one sentence; function keywords are in backquotes, which `worded` replaces
    code : error code for programs; by default that of the class (docs/records.md)
    fields : data in the message, by name: a file, an atom, a number

        >>> InputError("two atoms stand at one place", code="same_place", place="a.pdb").code
        'same_place'
    """

    code = "error"

    def __init__(self, message: object = "", *, code: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.fields = fields
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return shortened(printable(super().__str__()))


class InputError(PeleError):
    """Invalid values: wrong shapes, infinite coordinates, coincident atoms.

    >>> import pele_ocl
    >>> try:
    ...     pele_ocl.Energy("protein.pdb")
    ... except pele_ocl.InputError as error:
    ...     print(error.code)
    input
    """

    code = "input"


class KeywordError(InputError):
    """Keywords of a function that cannot be combined, or that require another keyword."""

    code = "keywords"


def refuse_for_atoms(**values: object) -> None:
    """Raise KeywordError for file keywords given together with Atoms. values : by name, false if not given"""
    for name, value in values.items():
        if value:
            raise KeywordError(f"`{name}` needs files; give a path instead of Atoms")


class FormatError(PeleError):
    """A file that does not match its format, or cannot be read or written.

    >>> import pele_ocl
    >>> try:
    ...     pele_ocl.read("gone.pdb")
    ... except pele_ocl.FormatError as error:
    ...     print(error)
    gone.pdb: no such file
    """

    code = "format"


class ParameterError(PeleError):
    """An atom or residue for which the force field or the solvent table has no parameters."""

    code = "parameter"


class DeviceError(PeleError):
    """No OpenCL device, no device that matches a choice, or a device without required features."""

    code = "device"


class DeviceMemoryError(DeviceError):
    """Insufficient device memory, possibly because other data are on the device."""

    code = "device_memory"


class KernelBuildError(PeleError):
    """A kernel rejected by the compiler, with its message, or missing from its file."""

    code = "kernel_build"

    def __str__(self) -> str:
        return printable(Exception.__str__(self))


class DeviceWarning(UserWarning):
    """An OpenCL runtime or device was ignored because of an error; others are used."""


class CacheWarning(UserWarning):
    """Compiled kernels cannot be cached on disk, or the cache was damaged. They are rebuilt; results do not change."""
