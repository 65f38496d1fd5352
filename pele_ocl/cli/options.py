"""Options that several commands share, gathered into what the commands want of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..atoms.radii import RADII_SETS
from ..common.variant import PRECISIONS
from ..gb_models import GB_MODELS, models_listed
from ..gb_models.solvent_model import GBN_CONVENTIONS, IN_VACUUM, KAPPAS, LCPO_UNKNOWN, PRESETS, SURFACES, SolventModel
from ..jobs.reading import require_lennard_jones as require_lennard_jones
from ..ligand import ATOM_TYPES, CHARGES
from ..reading import FILE
from ..units import POTENTIAL_UNITS
from .command import CONSTANTS, DEBUG, INPUT, OUTPUT
from .control_file import OPTION
from .reader import StructureReader, choice_options, selection_of

Command = Callable[..., Any]
Options = Sequence[Callable[[Command], Any]]
ReadAtoms = StructureReader

PATH = click.Path(path_type=Path)
DEFAULTS = SolventModel()
VACUUM, NO_GB = "vacuum", "none"  # of --solvent and of --gb: no solvent
_WITHOUT_SOLVENT = {"surface": "none", "ionic_strength": 0.0}  # values that say the same once more
MODEL_FIELDS = [f.name for f in fields(SolventModel)]
_STRUCTURE_NAMES = (
    "coordinates", "parameters", "model", "forcefield", "radii", "templates", "obc", "pele_data", "fallback",
    "allow_missing_terminals", "allow_scripts", "ligand_file", "ligand_forcefield", "ligand_charges",
)  # fmt: skip


def _add(command: Command, options: Options) -> Command:
    """Add several options to a command, in the order they are listed."""
    for option in reversed(options):
        command = option(command)
    return command


def _takes_carbon(options: Mapping[str, object]) -> str:
    """Rule of LCPO if a command has such surfaces of all that it reads, and takes carbon's parameters for others.

    `binding` says so itself, because it passes over waters and ions.
    """
    context = click.get_current_context()
    if context.command.name == "binding" or options.get("lcpo_unknown") != "carbon":
        return ""
    surface, like = options["surface"], options.get("like")
    if isinstance(like, str) and context.get_parameter_source("surface") == ParameterSource.DEFAULT:
        surface = PRESETS[like].get("surface", surface)
    rule = str(PRESETS[like].get("lcpo_rule", DEFAULTS.lcpo_rule)) if isinstance(like, str) else DEFAULTS.lcpo_rule
    return rule if surface == "lcpo" else ""


def given_options(*names: str) -> tuple[str, ...]:
    """List the parameters of these names whose values are no defaults."""
    context = click.get_current_context()
    absent = (None, ParameterSource.DEFAULT)
    return tuple(name for name in names if context.get_parameter_source(name) not in absent)


def like_given() -> str | None:
    """Program of --like of the command that runs."""
    found: str | None = click.get_current_context().params["like"]
    return found


def structure_options(command: Command) -> Command:
    """Options about structure and parameters; the command gets `read_atoms`, which reads a file by them.

    read_atoms(source) reads the model that --model says, read_atoms(source, number) that one.
    """

    @wraps(command)
    def gathered(*, select: str | None, without: str | None, only: str | None, **others: Any) -> Any:
        given = {name: others.pop(name) for name in _STRUCTURE_NAMES}
        given |= {name: others.get(name) for name in ("gb", "like", "trajectory")}  # which the command gets, too
        if others.get("solvent") == VACUUM:
            given["gb"] = NO_GB
        given["lcpo"] = _takes_carbon(others)
        path = others.get("path") or others.get("paths") or ()
        structures = path if isinstance(path, tuple) else (path,)
        read_atoms = StructureReader(structures=structures, selection=selection_of(select, without, only), **given)
        return command(read_atoms=read_atoms, **others)

    return _add(gathered, _STRUCTURE_OPTIONS)


def model_options(command: Command) -> Command:
    """Options about the solvent; the command gets them as `constants`, a SolventModel."""

    @wraps(command)
    def gathered(*, like: str | None, **others: Any) -> Any:
        context = click.get_current_context()
        values = {name: others.pop(name) for name in MODEL_FIELDS if name in others}
        given = {name: v for name, v in values.items() if context.get_parameter_source(name) != ParameterSource.DEFAULT}
        solvent = others.pop("solvent", None)  # of `nonbond` alone
        if solvent == VACUUM or values["gb"] == NO_GB:
            _refuse_solvent(context, values, solvent)
            given = {name: value for name, value in given.items() if name in IN_VACUUM} | {"gb": NO_GB}
        constants = SolventModel(**given) if like is None else SolventModel.like(like, **given)
        context.meta[CONSTANTS] = constants  # which files name
        return command(constants=constants, **others)

    return _add(gathered, _MODEL_OPTIONS)


def _refuse_solvent(context: click.Context, values: Mapping[str, object], solvent: str | None) -> None:
    """Raise UsageError for options about the solvent that are given beside one that leaves it out.

    values : of the options of the solvent model; solvent : of --solvent, None where the command has no such option
    """
    vacuum = solvent == VACUUM
    idle = [name for name, value in values.items() if name not in IN_VACUUM and value != _WITHOUT_SOLVENT.get(name)]
    idle += ["gb"] if vacuum and values["gb"] != NO_GB else []
    idle += ["solvent"] if not vacuum and solvent is not None else []
    idle += ["radii"] if not context.params.get("pb") else []  # Poisson-Boltzmann energies need radii without GB, too
    given = [name for name in idle if context.get_parameter_source(name) == ParameterSource.COMMANDLINE]
    if given:
        options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
        names = ", ".join(options[name] for name in given)
        word = f"--solvent {VACUUM}" if vacuum else f"--gb {NO_GB}"
        raise click.UsageError(f"{word} has no solvent; leave out {names}, which would play no part")


def surface_options(command: Command) -> Command:
    """Options about the nonpolar term, for commands that have it; `model_options` takes them, so it comes before."""
    tension = click.option(
        "--surface-tension",
        type=float,
        help="Surface tension of the nonpolar term, kcal/mol/A^2; by default 0.0054 for ace, 0.0072 for lcpo.",
    )
    unknown = click.option(
        "--lcpo-unknown",
        type=click.Choice(LCPO_UNKNOWN),
        default=DEFAULTS.lcpo_unknown,
        show_default=True,
        help="For atoms without LCPO parameters (Zn, Ca, Br, I): use carbon's, as AMBER does, with a note, or refuse.",
    )
    return click.option(
        "--surface",
        type=click.Choice(list(SURFACES)),
        default=DEFAULTS.surface,
        show_default=True,
        help="Nonpolar term: ace from Born radii, lcpo from the surface area.",
    )(tension(unknown(command)))


def run_options(command: Command) -> Command:
    """Options `precision` and `device`."""
    options: Options = [
        click.option(
            "--precision",
            type=click.Choice(PRECISIONS),
            default="float32",
            show_default=True,
            help="Working precision.",
        ),
        device_option(),
    ]
    return _add(command, options)


def device_option(name: str = "device", *, multiple: bool = False, more: str = "") -> Callable[[Command], Command]:
    """Add --device, passed as `name`; more : sentences of this command after the help of all."""
    text = "Device by its number in `pele-ocl devices`, or by part of its name; also PELE_OCL_DEVICE."
    return click.option("--device", name, multiple=multiple, metavar="D", help=text + more)


def json_option(of: str = "") -> Callable[[Command], Command]:
    """Add --json, passed as `as_json`; of : ` a line`, if there are several objects."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object{of} instead of the table.")


def resume_option(items: str) -> Callable[[Command], Command]:
    """Add --resume; items : plural of what is done one by one"""
    return click.option("--resume", is_flag=True, help=f"Continue an interrupted run: skip {items} that are done.")


def ligand_option(*, multiple: bool = False, more: str = "") -> Callable[[Command], Command]:
    """Add --ligand; more : sentences of this command after the help of all."""
    text = "Atoms of the ligand, as in --select."
    return click.option("--ligand", multiple=multiple, required=True, metavar="EXPR", help=text + more)


def from_units_option(of: str) -> Callable[[Command], Command]:
    """Add --from-units, about the values in the file `of`."""
    text = f"Unit of the values in {of}, if the file does not name it."
    return click.option("--from-units", type=click.Choice(POTENTIAL_UNITS), help=text)


def precisions_option(default: str = "both") -> Callable[[Command], Command]:
    """Add --precision, passed as `precisions`, for a command that measures several."""
    choice = click.Choice(PRECISIONS)
    return click.option("--precision", "precisions", type=choice, multiple=True, help=f"Default: {default}.")


def debug_option(command: Command) -> Command:
    """Option --debug, noted where the group of all commands finds it."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[DEBUG] = value

    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=remember, help="Show the traceback of an error."
    )(command)


def report_options(command: Command) -> Command:
    """Options `as_json` and `verbose`, and --debug."""
    options: Options = [
        json_option(),
        click.option("-v", "--verbose", is_flag=True, help="Print more: parameters, steps, times."),
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


def _number(name: str, default: float | None, help_text: str) -> Callable[[Command], Command]:
    return click.option(name, type=float, default=default, show_default=default is not None, help=help_text)


class GBModelName(click.Choice):  # type: ignore[type-arg]  # which click 8.1 has none of
    """Read the name of a GB model; who gives AMBER's number in its place is told the name."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(f"{value!r} is not one of {models_listed()}", param, ctx)
        return value


def pele_data_option(where: str = "") -> Callable[[Command], Command]:
    """Add --pele-data; where : folders that count besides."""
    text = f"PELE Data or DataLocal folder{where}."
    return click.option("--pele-data", type=INPUT, multiple=True, metavar="DIR", help=text)


model_option = click.option(
    "--model", type=click.IntRange(min=0), help="Number of the model to read, if the file has several."
)
templates_option = click.option(
    "--templates", type=INPUT, multiple=True, metavar="PATH", help="PELE template, or a folder of templates."
)
obc_option = click.option("--obc", type=INPUT, multiple=True, metavar="FILE", help="OBC table, text or JSON.")
fallback_option = click.option(
    "--fallback", is_flag=True, help="Take radii by element and bonds for atoms without an OBC row."
)
png_option = click.option("--png", type=OUTPUT, metavar="FILE", help="Draw the three central slices; needs matplotlib.")

_STRUCTURE_OPTIONS: Options = (
    click.option(
        "-c",
        "--coordinates",
        type=INPUT,
        multiple=True,
        metavar="FILE",
        help="Coordinates for a topology of AMBER, GROMACS or CHARMM: .rst7, .inpcrd, .ncrst, .nc, .gro or "
        "another structure. For several topologies give one for all, or one for each in their order.",
    ),
    click.option(
        "--parameters",
        type=INPUT,
        multiple=True,
        metavar="FILE",
        help="CHARMM parameter file for a .psf: .prm, .str.",
    ),
    model_option,
    click.option(
        "--forcefield",
        metavar="NAME",
        help="Force field: amber99sb (default), or a folder of PELE's Templates such as OPLS2005. Through OpenMM also "
        "amber14, ff14SB, ff19SB, charmm36 or XML files with commas between them.",
    ),
    click.option(
        "--allow-scripts", is_flag=True, help="Run the Python scripts that an XML file of a force field may hold."
    ),
    click.option(
        "--gb-radii",
        "--radii",
        "radii",
        type=click.Choice([*RADII_SETS, FILE, "amber"]),
        help="Set of GB radii. openmm-obc (once named amber) and pele serve atoms that no OBC table names; "
        "AMBER's sets serve all atoms; file takes the radii in the structure's files. Default: file if "
        "it has radii, else mbondi3 with gbn2, bondi with gbn, pele with PELE's force fields, openmm-"
        "obc with Amber99SB.",
    ),
    click.option(
        "--ligand-file",
        type=INPUT,
        multiple=True,
        metavar="FILE",
        help="Add the first molecule of a file of small molecules: .sdf, .mol2 or .smi. Can be given several times.",
    ),
    click.option(
        "--ligand-forcefield",
        type=click.Choice(ATOM_TYPES),
        default=ATOM_TYPES[0],
        show_default=True,
        help="Force field of ligands without parameters; needs AmberTools' antechamber.",
    ),
    click.option(
        "--ligand-charges",
        type=click.Choice(list(CHARGES)),
        default="gas",
        show_default=True,
        help="Charges of ligands without parameters: Gasteiger's, AM1-BCC or ABCG2.",
    ),
    templates_option,
    obc_option,
    pele_data_option(),
    fallback_option,
    click.option(
        OPTION,
        type=INPUT,
        metavar="FILE",
        expose_value=False,
        help="PELE control file; IN can also be one. Options override its force field, solvent, constants and"
        " structure.",
    ),
    click.option(
        "--allow-missing-terminals/--no-allow-missing-terminals",
        default=True,
        show_default=True,
        help="Treat incomplete chain ends as inner residues, as PELE does; otherwise the end's template is "
        "used without the missing atoms.",
    ),
    *choice_options(),
)


def dielectric_options(solute: float, solvent: float) -> Callable[[Command], Command]:
    """Add --solute-dielectric and --solvent-dielectric with these defaults."""
    options = (
        _number("--solute-dielectric", solute, "Relative permittivity inside the molecule."),
        _number("--solvent-dielectric", solvent, "Relative permittivity of the solvent."),
    )
    return lambda command: _add(command, options)


def spacing_options(command: Command) -> Command:
    """Options `spacing` and `padding` of a grid around a molecule."""
    options = (
        _number("--spacing", 0.5, "Distance between neighbouring points of the grid, Angstrom."),
        _number("--padding", 10.0, "Width of the grid around the molecule, Angstrom."),
    )
    return _add(command, options)


_MODEL_OPTIONS: Options = (
    click.option(
        "--like",
        type=click.Choice(list(PRESETS)),
        help="Use another program's constants: dielectrics, Coulomb's constant, kappa, nonpolar term, end of the Born "
        "integrals. Other options override them. amber: sander and pmemd (water 78.5, no surface). With LCPO surfaces "
        "mmpbsa.py: MMPBSA.py without decomposition (78.3); sander: MMPBSA.py with decomposition or use_sander=1 (80); "
        "gmx: gmx_MMPBSA (78.5). openmm: its applications. exact: CODATA's constants, as without it. pele: PELE.",
    ),
    click.option(
        "--gb",
        type=GBModelName(list(GB_MODELS)),
        default=DEFAULTS.gb,
        show_default=True,
        help="Generalized Born model; `none` for no solvent.",
    ),
    click.option(
        "--rgb-max",
        type=float,
        metavar="A",
        help="Ignore atoms beyond this distance when computing Born radii, as AMBER's rgbmax does, Angstrom; "
        "by default none.",
    ),
    dielectric_options(DEFAULTS.solute_dielectric, DEFAULTS.solvent_dielectric),
    _number("--ionic-strength", DEFAULTS.ionic_strength, "Concentration of a 1:1 salt, mol/L; PELE's default is 0.15."),
    _number("--temperature", DEFAULTS.temperature, "Temperature, K; matters only with salt."),
    click.option(
        "--kappa-convention",
        type=click.Choice(list(KAPPAS)),
        default=DEFAULTS.kappa_convention,
        show_default=True,
        help="How ionic strength becomes screening: by Debye and Hueckel, as in sander, or as in OpenMM.",
    ),
    click.option(
        "--gbn-convention",
        type=click.Choice(list(GBN_CONVENTIONS)),
        default=DEFAULTS.gbn_convention,
        show_default=True,
        help="Take necks between table steps, and GBn2's sulphur and nucleic oxygen, as OpenMM or as sander does.",
    ),
    _number(
        "--coulomb-constant", DEFAULTS.coulomb_constant,
        "Coulomb's constant, kcal A/(mol e^2): Amber's is 332.0522173, PELE's 332.0637.",
    ),
)  # fmt: skip


def range_option(default: str = "") -> Callable[[Command], Command]:
    """Add --range, passed as `end`; default : what the help says of it."""
    text = f"Range of the colours, from -R to R; by default {default}it follows the values."
    return click.option("--range", "end", type=float, metavar="R", callback=_range_end, help=text)


def _range_end(_: click.Context, __: click.Parameter, end: float | None) -> float | None:
    """Read the end; a value that is none is refused before any work is done, NaN too."""
    from ..view.colouring import LEAST_END, MOST_END

    if end is not None and not LEAST_END <= end <= MOST_END:
        raise click.BadParameter(f"{end:g} is not a number from {LEAST_END:g} to {MOST_END:g}")
    return end


strict_option = click.option(
    "--strict", is_flag=True,
    help="Fail, instead of printing a note, for atoms too close, open disulphides and unreasonable energies.",
)  # fmt: skip
models_option = click.option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Take all models of a PDB file as conformations of one molecule.",
)  # fmt: skip
