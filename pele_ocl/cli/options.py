"""Decorators that add options common to several commands: files, solvents, pairs and variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import click

from ..common.variant import PRECISIONS, Variant
from ..energy.variants import BORN, VARIANTS
from ..reading import Reading
from .call import Call
from .command import INPUT, OUTPUT, command_option
from .command import debug_option as debug_option
from .control_file import OPTION
from .groups import click_options, help_of, option_of
from .option_groups import (
    FramesGroup,
    ReportGroup,
    RunGroup,
    Shares,
    SolventGroup,
    StructureGroup,
    SurfaceGroup,
    Workers,
)

Command = Callable[..., Any]
Options = Sequence[Callable[[Command], Any]]
ReadAtoms = Reading

PATH = click.Path(path_type=Path)
_CHOICE = ("select", "without", "only")
_STRUCTURE_NAMES = tuple(of.name for of in fields(StructureGroup) if of.name not in _CHOICE)


def _add(command: Command, options: Options) -> Command:
    """Add several options to a command, in order."""
    for option in reversed(options):
        command = option(command)
    return command


WORDS = frozenset(
    of.name for group in (StructureGroup, SolventGroup, SurfaceGroup, FramesGroup, Shares) for of in fields(group)
) | {"resume", "solvent"}


def words_of(command: Command) -> Command:
    """Collect options about files, the solvent, trajectories and processes as `words`, keywords of a function."""
    takes_call = "call" in signature(command).parameters

    @wraps(command)
    def gathered(*, call: Call, **options: Any) -> Any:
        words = call.take(WORDS & options.keys())
        if "ligand_file" in words:
            words["ligands"] = words.pop("ligand_file")
        own = {"call": call} if takes_call else {}
        return command(words=words, **own, **{name: of for name, of in options.items() if name not in WORDS})

    return gathered


def structure_flags(command: Command) -> Command:
    """Add options about structure and parameters, passed unchanged."""
    return _add(command, _STRUCTURE_OPTIONS)


def solvent_flags(command: Command) -> Command:
    """Add options about the solvent, passed unchanged."""
    return _add(command, _MODEL_OPTIONS)


def structure_options(command: Command) -> Command:
    """Add options about structure and parameters, passed as a function `read_atoms` that uses them.

    read_atoms(source) reads the model given by --model, read_atoms(source, number) another one.
    """

    @wraps(command)
    def gathered(*, select: str | None, without: str | None, only: str | None, **others: Any) -> Any:
        given = {name: others.pop(name) for name in _STRUCTURE_NAMES}
        path = others.get("path") or others.get("paths") or ()
        structures = path if isinstance(path, tuple) else (path,)
        read_atoms = Reading(
            structures=structures, select=select, without=without, only=only, ligands=given.pop("ligand_file"), **given
        )
        return command(read_atoms=read_atoms, **others)

    return _add(gathered, _STRUCTURE_OPTIONS)


def _one_or_several(_: click.Context, __: click.Parameter, given: tuple[Path, ...]) -> Path | tuple[Path, ...]:
    return given[0] if len(given) == 1 else given


structures_argument = click.argument(
    "path", metavar="IN...", type=INPUT, nargs=-1, required=True, callback=_one_or_several
)


def surface_options(command: Command) -> Command:
    """Add options about the nonpolar term."""
    return _add(command, click_options(SurfaceGroup))


def run_options(command: Command) -> Command:
    """Add --precision and --device."""
    return _add(command, click_options(RunGroup))


def device_option(name: str = "device", *, multiple: bool = False, more: str = "") -> Callable[[Command], Command]:
    """Add --device, passed as `name`. more : sentences appended to the help text"""
    text = help_of(RunGroup, "device") + more
    return command_option(
        "--device", name, multiple=multiple, metavar="D", help=text, heading="Devices and processes", essential=True
    )


def json_option(of: str = "") -> Callable[[Command], Command]:
    """Add --json, passed as `as_json`; of : ` per line`, if there are several objects."""
    return command_option(
        "--json", "as_json", is_flag=True, help=f"Print one JSON object{of} instead of the table.", heading="Reports",
        essential=True,
    )  # fmt: skip


def resume_option(items: str, **more: Any) -> Callable[[Command], Command]:
    """Add --resume. items : name of the items, in the plural"""
    return command_option(
        "--resume", is_flag=True, help=f"Continue an interrupted run: skip {items} that are done.",
        heading="Output", **more,
    )  # fmt: skip


overwrite_option = command_option(
    "--overwrite",
    is_flag=True,
    help="Replace an earlier run in DIR; otherwise an existing run is an error.",
    heading="Output",
)


def ligand_option(*, multiple: bool = False, more: str = "") -> Callable[[Command], Command]:
    """Add --ligand. more : sentences appended to the help text"""
    text = "Atoms of the ligand, as in --select."
    return command_option(
        "--ligand", multiple=multiple, required=True, metavar="EXPR", help=text + more, heading="Parts of the complex",
    )  # fmt: skip


def precisions_option(default: str = "both") -> Callable[[Command], Command]:
    """Add --precision, passed as `precisions`, for a command that measures several."""
    choice = click.Choice(PRECISIONS)
    return click.option("--precision", "precisions", type=choice, multiple=True, help=f"Default: {default}.")


def report_options(command: Command) -> Command:
    """Add --json, --verbose and --debug."""
    return _add(command, [*click_options(ReportGroup), debug_option])


def cluster_options(command: Command) -> Command:
    """Add --workers, --scheduler and --shard."""
    return _add(command, click_options(Shares))


def place_options(command: Command) -> Command:
    """Add --workers and --scheduler, for commands without shards."""
    return _add(command, click_options(Workers))


def trajectory_flags(command: Command) -> Command:
    """Add options about a trajectory, and --resume."""
    return _RESUME(frame_flags(command))


def frame_flags(command: Command) -> Command:
    """Add options about a trajectory."""
    return _add(command, click_options(FramesGroup))


def device_list(device: str | None) -> str | list[str] | None:
    """Parse a list of devices such as `0,1`."""
    if device is None or "," not in device:
        return device
    parts = [part.strip() for part in device.split(",")]
    if not all(parts):
        raise click.UsageError(f"--device {device} has no device before or after a comma")
    return parts


def pele_data_option(where: str = "") -> Callable[[Command], Command]:
    """Add --pele-data. where : further folders searched"""
    text = f"{help_of(StructureGroup, 'pele_data')[:-1]}{where}."
    return command_option(
        "--pele-data", type=INPUT, multiple=True, metavar="DIR", help=text, heading="Structure and force field"
    )


model_option = option_of(StructureGroup, "model")
guess_radii_option = option_of(StructureGroup, "guess_radii")

_CONTROL = command_option(
    OPTION, type=INPUT, metavar="FILE", expose_value=False,
    help="PELE control file; IN can also be one. Options override its force field, solvent, constants and structure.",
    heading="Structure and force field",
)  # fmt: skip
_ENDS = [of.name for of in fields(StructureGroup)].index("allow_missing_terminals")  # position in --help
_STRUCTURE_OPTIONS: Options = (
    *click_options(StructureGroup)[:_ENDS], _CONTROL, *click_options(StructureGroup)[_ENDS:],
)  # fmt: skip


_MODEL_OPTIONS: Options = click_options(SolventGroup)


_RESUME = command_option(
    "--resume", is_flag=True, help="Continue an interrupted run that wrote to OUT.", heading="Output"
)
strict_option = command_option(
    "--strict", is_flag=True,
    help="Fail, instead of printing a note, if atoms are too close, disulphides are open or energies are unreasonable.",
    heading="Reports",
)  # fmt: skip
models_option = command_option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Use one model of a PDB file, or all as conformations of one molecule.", heading="Models and trajectories",
)  # fmt: skip


def variant_option(
    what: str, variants: Mapping[str, Variant[Any]] = VARIANTS, *, listed: bool = True
) -> Callable[[Command], Command]:
    """Add --variant. what : description of the choice; listed : True to describe each variant"""
    each = ": " + "; ".join(f"{name}, {of.summary}" for name, of in variants.items()) if listed else ""
    choice = click.Choice(["auto", *variants])
    return command_option(
        "--variant", type=choice, default="auto", show_default=True, help=f"{what}{each}.", heading="Computation"
    )


pair_variant_option = variant_option("How pairs are summed")
born_option = command_option(
    "--born", type=click.Choice(["auto", *BORN]), default="auto", show_default=True,
    help="How Born radii are computed: " + "; ".join(f"{name}, {of.summary}" for name, of in BORN.items()) + ".",
    heading="Computation",
)  # fmt: skip

no_gradient_option = command_option("--no-gradient", is_flag=True, help="Compute energies only.", heading="Computation")


def cutoff_option(default: str) -> Callable[[Command], Command]:
    """Add --cutoff. default : description of the default in the help text"""
    text = f"Omit pairs beyond this distance, Angstrom; {default}."
    return command_option("--cutoff", type=float, help=text, heading="Computation", essential=True)


def results_option(what: str) -> Callable[[Command], Command]:
    """Add --output, for `what` of a structure, or energies of models or frames."""
    text = (
        f"Write {what}: .h5, .csv or .json; or energies of every frame of a trajectory, written as they are computed: "
        ".h5, .csv or .jsonl."
    )
    return command_option("-o", "--output", type=OUTPUT, metavar="OUT", help=text, essential=True)


def per_residue_option(more: str = "") -> Callable[[Command], Command]:
    """Add --per-residue. more : text appended to the help text"""
    return command_option(
        "--per-residue", is_flag=True, help=f"Also report each residue's energies{more}.", heading="Reports",
        essential=True,
    )  # fmt: skip


one_four_option = command_option(
    "--one-four", type=click.Choice(["scale", "exclude"]), default="scale", show_default=True,
    help="Scale 1-4 pairs as in the force field, or omit them.", heading="Computation",
)  # fmt: skip


def pair_options(command: Command) -> Command:
    """Add options about pairs: `fixed_radii`, `cutoff`, `one_four` and `terms`."""
    return _add(command, _PAIRS)


_PAIRS: Options = (
    command_option(
        "--fixed-radii", is_flag=True, help="Keep Born radii fixed in the gradient, as PELE does.",
        heading="Computation",
    ),
    cutoff_option("by default none"),
    one_four_option,
    command_option(
        "--terms", metavar="NAMES",
        help="Terms to compute, separated by commas: bond,angle,torsion. bonded, nonbonded and gb are groups "
        "of terms. Default: all.", heading="Computation",
    ),
)  # fmt: skip


accuracy_option = command_option(
    "--accuracy", type=float, metavar="A",
    help="Largest relative error of a Born radius computed with a tree, 1e-6 to 1e-4; by default "
    "1e-5.", heading="Computation",
)  # fmt: skip
