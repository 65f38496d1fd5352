"""Options that several commands share, gathered into what the commands want of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..common.variant import PRECISIONS
from ..gb_models.solvent_model import IN_VACUUM, SolventModel
from ..jobs.doors import solvent_of
from ..reading import FirstFrame, Reading
from ..reading import require_lennard_jones as require_lennard_jones
from .cluster import NAMES as CLUSTER
from .cluster import cluster_options_of
from .command import CONSTANTS, DEBUG, INPUT, current, is_given
from .control_file import OPTION
from .groups import click_options, former, help_of, option_of
from .option_groups import FramesGroup, RunGroup, SolventGroup, StructureGroup, SurfaceGroup

Command = Callable[..., Any]
Options = Sequence[Callable[[Command], Any]]
ReadAtoms = Reading

PATH = click.Path(path_type=Path)
DEFAULTS = SolventModel()
VACUUM, NO_GB = "vacuum", "none"  # of --solvent and of --gb: no solvent
_WITHOUT_SOLVENT = {"surface": "none", "ionic_strength": 0.0}  # values that say the same once more
MODEL_FIELDS = [f.name for f in fields(SolventModel)]
_CHOICE = ("select", "without", "only")
_STRUCTURE_NAMES = tuple(of.name for of in fields(StructureGroup) if of.name not in _CHOICE)


def _add(command: Command, options: Options) -> Command:
    """Add several options to a command, in the order they are listed."""
    for option in reversed(options):
        command = option(command)
    return command


def _solvent_given(options: Mapping[str, object]) -> SolventModel | None:
    """Solvent of a command, None if it has none: atoms get its radii and notes as they are read.

    `binding` notes atoms without LCPO parameters itself, because it passes over waters and ions.
    """
    if "gb" not in options:
        return None
    model = _constants(options)
    return replace(model, lcpo_unknown="refuse") if current().command.name == "binding" else model


def _constants(options: Mapping[str, Any]) -> SolventModel:
    """Make the solvent of the options that were given."""
    context, like = current(), options.get("like")
    given = {
        name: options[name] for name in MODEL_FIELDS
        if name in options and context.get_parameter_source(name) != ParameterSource.DEFAULT
    }  # fmt: skip
    if options.get("solvent") == VACUUM or options["gb"] == NO_GB:
        given = {name: value for name, value in given.items() if name in IN_VACUUM} | {"gb": NO_GB}
    return SolventModel(**given) if like is None else SolventModel.like(like, **given)


def given_options(*names: str) -> tuple[str, ...]:
    """List the parameters of these names whose values are no defaults."""
    context = current()
    absent = (None, ParameterSource.DEFAULT)
    return tuple(name for name in names if context.get_parameter_source(name) not in absent)


WORDS = frozenset(
    of.name for group in (StructureGroup, SolventGroup, SurfaceGroup, FramesGroup) for of in fields(group)
)
WORDS |= {"resume", "solvent"}


def words_of(command: Command) -> Command:
    """Gather what was given about files, the solvent, trajectories and processes as `words`: keywords of a function."""

    @wraps(command)
    def gathered(**options: Any) -> Any:
        context, cluster = current(), cluster_options_of(current())
        words = {name: options.pop(name) for name in list(options) if name in WORDS}
        words = {name: value for name, value in words.items() if is_given(context, name)}
        if words.get("gb") == NO_GB or words.get("solvent") == VACUUM:  # a control file's have no part then
            words = {name: of for name, of in words.items() if not _is_of_file(context, name) or name in IN_VACUUM}
        if "ligand_file" in words:
            words["ligands"] = words.pop("ligand_file")
        shared = {name: getattr(cluster, name) for name in CLUSTER}
        words |= {name: value for name, value in shared.items() if value is not None}
        vacuum = {"gb": NO_GB} if words.get("solvent") == VACUUM else {}
        if "gb" in context.params:  # which files name
            own = {name: of for name, of in words.items() if name == "like" or name in MODEL_FIELDS}
            context.meta[CONSTANTS] = solvent_of({**own, **vacuum}, "solvent='vacuum'" if vacuum else "gb='none'")
        return command(words=words, **options)

    return gathered


def _is_of_file(context: click.Context, name: str) -> bool:
    """True for an option about the solvent whose value is of a control file."""
    return context.get_parameter_source(name) == ParameterSource.DEFAULT_MAP and name in (*MODEL_FIELDS, "radii")


def structure_flags(command: Command) -> Command:
    """Options about structure and parameters, which the command gets as they are."""
    return _add(command, _STRUCTURE_OPTIONS)


def solvent_flags(command: Command) -> Command:
    """Options about the solvent, which the command gets as they are."""
    return _add(command, _MODEL_OPTIONS)


def structure_options(command: Command) -> Command:
    """Options about structure and parameters; the command gets `read_atoms`, which reads a file by them.

    read_atoms(source) reads the model that --model says, read_atoms(source, number) that one.
    """

    @wraps(command)
    def gathered(*, select: str | None, without: str | None, only: str | None, **others: Any) -> Any:
        given = {name: others.pop(name) for name in _STRUCTURE_NAMES}
        path = others.get("path") or others.get("paths") or ()
        structures = path if isinstance(path, tuple) else (path,)
        trajectory = others.get("trajectory")
        read_atoms = Reading(
            structures=structures, select=select, without=without, only=only, ligands=given.pop("ligand_file"),
            solvent=_solvent_given(others), trajectory=trajectory if isinstance(trajectory, FirstFrame) else None,
            **given,
        )  # fmt: skip
        return command(read_atoms=read_atoms, **others)

    return _add(gathered, _STRUCTURE_OPTIONS)


def model_options(command: Command) -> Command:
    """Options about the solvent; the command gets them as `constants`, a SolventModel."""

    @wraps(command)
    def gathered(**options: Any) -> Any:
        context = current()
        values = {name: options[name] for name in MODEL_FIELDS if name in options}
        solvent = options.get("solvent")  # of `nonbond` alone
        if solvent == VACUUM or values["gb"] == NO_GB:
            _refuse_solvent(context, values, solvent)
        constants = _constants(options)
        others = {name: of for name, of in options.items() if name not in (*values, "like", "solvent")}
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
    return _add(command, click_options(SurfaceGroup))


def run_options(command: Command) -> Command:
    """Options `precision` and `device`."""
    return _add(command, click_options(RunGroup))


def device_option(name: str = "device", *, multiple: bool = False, more: str = "") -> Callable[[Command], Command]:
    """Add --device, passed as `name`; more : sentences of this command after the help of all."""
    text = help_of(RunGroup, "device") + more
    return click.option("--device", name, multiple=multiple, metavar="D", help=text)


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


def pele_data_option(where: str = "") -> Callable[[Command], Command]:
    """Add --pele-data; where : folders that count besides."""
    text = f"{help_of(StructureGroup, 'pele_data')[:-1]}{where}."
    return click.option("--pele-data", type=INPUT, multiple=True, metavar="DIR", help=text)


model_option = option_of(StructureGroup, "model")
templates_option = option_of(StructureGroup, "templates")
obc_option = option_of(StructureGroup, "obc")
guess_radii_option = click.option(
    "--guess-radii", is_flag=True, **former("--fallback"), help=help_of(StructureGroup, "guess_radii")
)

_CONTROL = click.option(
    OPTION, type=INPUT, metavar="FILE", expose_value=False,
    help="PELE control file; IN can also be one. Options override its force field, solvent, constants and structure.",
)  # fmt: skip
_ENDS = [of.name for of in fields(StructureGroup)].index("allow_missing_terminals")  # before which --help lists it
_STRUCTURE_OPTIONS: Options = (
    *click_options(StructureGroup)[:_ENDS], _CONTROL, *click_options(StructureGroup)[_ENDS:],
)  # fmt: skip


def dielectric_options(solute: float, solvent: float) -> Callable[[Command], Command]:
    """Add --solute-dielectric and --solvent-dielectric with these defaults."""
    options = (
        _number("--solute-dielectric", solute, help_of(SolventGroup, "solute_dielectric")),
        _number("--solvent-dielectric", solvent, help_of(SolventGroup, "solvent_dielectric")),
    )
    return lambda command: _add(command, options)


_MODEL_OPTIONS: Options = click_options(SolventGroup)


strict_option = click.option(
    "--strict", is_flag=True,
    help="Fail, instead of printing a note, for atoms too close, open disulphides and unreasonable energies.",
)  # fmt: skip
models_option = click.option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Take all models of a PDB file as conformations of one molecule.",
)  # fmt: skip
