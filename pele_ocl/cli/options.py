"""Options that several commands share, gathered into what the commands want of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

import click

from ..atoms import Atoms
from ..chemistry import solvent_sentence
from ..errors import InputError
from ..forcefield import ForceField
from ..formats import is_pqr, is_structure, structure_format, structure_suffix
from ..gb_models import GB_MODELS
from ..inputfile import InputFile, read_file
from ..reading import read
from ..solvent_model import SolventModel
from ..variant import PRECISIONS
from .command import COORDINATES, DEBUG, INPUT
from .terminal import note

Command = Callable[..., Any]
ReadAtoms = Callable[..., Atoms]

PATH = click.Path(path_type=Path)
LARGE_FILE = 20_000_000  # bytes that take more than two seconds to read
DEFAULTS = SolventModel()


def _add(command: Command, options: Sequence[Callable[[Command], Any]]) -> Command:
    """The command with several options, in the order they are listed."""
    for option in reversed(options):
        command = option(command)
    return command


def structure_options(command: Command) -> Command:
    """Options about structure and parameters; the command gets `read_atoms`, which reads a file by them.

    read_atoms(source) reads the model that --model says, read_atoms(source, number) that one.
    """

    @wraps(command)
    def gathered(
        *, coordinates: Path | None, model: int | None, forcefield: str | None, radii: str | None,
        templates: tuple[Path, ...], obc: tuple[Path, ...], pele_data: tuple[Path, ...], fallback: bool, **others: Any,
    ) -> Any:  # fmt: skip
        told = set[str]()

        @lru_cache(maxsize=1)
        def field_for(path: Path) -> ForceField | None:
            if is_pqr(path):
                _refuse_parameters(path, forcefield, radii, templates, obc, pele_data, fallback)
                return None
            return ForceField.load(forcefield, radii, templates, obc, pele_data, fallback)

        def read_atoms(source: InputFile, number: int | None = None) -> Atoms:
            """The atoms of a file; number : of the model, by default the option's"""
            if None not in (model, number):
                raise click.UsageError("choose one of --model and --models")
            if None not in (coordinates, number):
                raise click.UsageError("--models all reads the models of a PDB file; leave out --coordinates")
            tell(f"Reading {source}" if len(source.data) > LARGE_FILE else "")
            field = field_for(source.path)
            atoms = read(source, field, model if number is None else number, places(coordinates))
            held = solvent_sentence(atoms.labels)
            for sentence in (*atoms.notes, *([f"{source}: {held}"] if held else [])):
                tell(f"Note: {sentence}")
            return atoms

        @lru_cache(maxsize=1)
        def places(path: Path | None) -> InputFile | None:
            """The file of the positions, which is read once, and noted for the provenance."""
            if path is None:
                return None
            file = read_file(path)
            click.get_current_context().meta[COORDINATES] = file
            return file

        def tell(sentence: str) -> None:
            """Say it on stderr, once."""
            if sentence and sentence not in told:
                told.add(sentence)
                note(sentence)

        return command(read_atoms=read_atoms, **others)

    options = [
        click.option(
            "-c",
            "--coordinates",
            type=INPUT,
            metavar="FILE",
            help="Positions of the atoms of an AMBER topology: .rst7, .inpcrd, .ncrst, .nc or a structure.",
        ),
        click.option(
            "--model", type=click.IntRange(min=0), help="Number of the model to read, in a file with several."
        ),
        click.option(
            "--forcefield",
            metavar="NAME",
            help="amber99sb, the default, or a folder of PELE's Templates: OPLS2005, ...",
        ),
        click.option(
            "--radii",
            type=click.Choice(["amber", "pele"]),
            help="GB radii for atoms that no OBC table names; by default amber with Amber99SB, pele with a force field "
            "of your own.",
        ),
        click.option(
            "--templates", type=INPUT, multiple=True, metavar="PATH", help="PELE template, or a folder of them."
        ),
        click.option("--obc", type=INPUT, multiple=True, metavar="FILE", help="OBC table, text or JSON."),
        click.option("--pele-data", type=INPUT, multiple=True, metavar="DIR", help="PELE Data or DataLocal folder."),
        click.option("--fallback", is_flag=True, help="Radii by element and bonds for atoms without an OBC row."),
    ]
    return _add(gathered, options)


def _refuse_parameters(path: Path, *values: object) -> None:
    """Raise InputError for options about parameters, which a file that brings them would have no use for."""
    names = ("--forcefield", "--radii", "--templates", "--obc", "--pele-data", "--fallback")
    given = [name for name, value in zip(names, values, strict=True) if value]
    if given:
        kind = structure_format(path).kind
        raise InputError(f"{path}: {kind} brings its own charges and radii; leave out {', '.join(given)}")


def require_lennard_jones(path: Path) -> None:
    """Raise InputError for a file of a format that has no Lennard-Jones parameters."""
    if is_structure(path) and not structure_format(path).has_lennard_jones:
        suffix = structure_suffix(path)
        raise InputError(f"{path}: a {suffix} file has no Lennard-Jones parameters; give a .pdb or .cif file")


def model_options(command: Command) -> Command:
    """Options about the solvent; the command gets them as `constants`, a SolventModel."""

    @wraps(command)
    def gathered(
        *, gb: str, rgb_max: float | None, solute_dielectric: float, solvent_dielectric: float, ionic_strength: float,
        temperature: float, **others: Any,
    ) -> Any:  # fmt: skip
        constants = SolventModel(
            solute_dielectric, solvent_dielectric, ionic_strength, temperature, rgb_max=rgb_max, gb=gb
        )
        return command(constants=constants, **others)

    def option(name: str, default: float, help_text: str) -> Callable[[Command], Command]:
        return click.option(name, type=float, default=default, show_default=True, help=help_text)

    options: list[Callable[[Command], Any]] = [
        click.option(
            "--gb",
            type=click.Choice(list(GB_MODELS)),
            default=DEFAULTS.gb,
            show_default=True,
            help="Generalized Born model, from which the Born radii follow; `none` for no solvent.",
        ),
        click.option(
            "--rgb-max",
            type=float,
            metavar="A",
            help="Born radii count what is within this distance of an atom, as AMBER's rgbmax does; by default all.",
        ),
        option("--solute-dielectric", DEFAULTS.solute_dielectric, "Relative permittivity inside the molecule."),
        option("--solvent-dielectric", DEFAULTS.solvent_dielectric, "Relative permittivity of the solvent."),
        option("--ionic-strength", DEFAULTS.ionic_strength, "Of a 1:1 salt, mol/L; PELE's own default is 0.15."),
        option("--temperature", DEFAULTS.temperature, "K; matters only with salt."),
    ]
    return _add(gathered, options)


def run_options(command: Command) -> Command:
    """Options `precision` and `device`."""
    options: list[Callable[[Command], Any]] = [
        click.option(
            "--precision",
            type=click.Choice(PRECISIONS),
            default="float32",
            show_default=True,
            help="Working precision.",
        ),
        click.option(
            "--device", metavar="D", help="Index of `pele-ocl devices`, or part of a name; also PELE_OCL_DEVICE."
        ),
    ]
    return _add(command, options)


def debug_option(command: Command) -> Command:
    """Option --debug, noted where the group of all commands finds it."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[DEBUG] = value

    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=remember, help="Show the traceback of an error."
    )(command)


def report_options(command: Command) -> Command:
    """Options `as_json` and `verbose`, and --debug."""
    options: list[Callable[[Command], Any]] = [
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table."),
        click.option("-v", "--verbose", is_flag=True, help="Say more: parameters, steps, times."),
        debug_option,
    ]
    return _add(command, options)


def device_list(device: str | None) -> str | list[str] | None:
    """`0,1` as two devices."""
    if device is None or "," not in device:
        return device
    parts = [part.strip() for part in device.split(",")]
    if not all(parts):
        raise click.UsageError(f"--device {device} lacks a device before or behind a comma")
    return parts
