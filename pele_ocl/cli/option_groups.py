"""Groups of options common to several commands, with names and defaults of the library keywords."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click

from ..atoms.radii import PDB2PQR_SETS, RADII_SETS, tidy_set
from ..common.errors import InputError
from ..common.variant import PRECISIONS
from ..contract.cells import IMAGES
from ..gb_models import GB_MODELS, model_name, models_listed
from ..gb_models.solvent_model import GBN_CONVENTIONS, KAPPAS, LCPO_UNKNOWN, PRESETS, SURFACES, SolventModel
from ..ligand.settings import ATOM_TYPES, CHARGES, HYDROGENS
from ..reading import FILE, Reading
from ..units import in_unit
from .groups import option


class SetOfRadii(click.Choice[str]):
    """Name of a set of radii. Deprecated names are also accepted, and cause a note."""

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> str:
        if isinstance(value, str) and tidy_set(value) != value:
            return value
        return super().convert(value, param, context)


class Amount(click.types.FloatParamType):
    """A quantity, with or without a unit. unit : as in pele_ocl.units.in_unit"""

    def __init__(self, unit: str) -> None:
        self.unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        with suppress(InputError):
            value = in_unit("", value, self.unit)
        return super().convert(value, param, ctx)


class OneTemperature(Amount):
    """A single temperature. For a list, the error message suggests the correct option."""

    def __init__(self) -> None:
        super().__init__("K")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "," in value:
            self.fail(
                f"{value!r} is a list, but only one temperature is allowed; use --temperatures of simulate", param, ctx
            )
        return super().convert(value, param, ctx)


class GBModelName(click.Choice):  # type: ignore[type-arg]  # which click 8.1 has none of
    """Name of a GB model, or its number in AMBER."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = str(model_name(value.lower()))
        if name not in self.choices:
            self.fail(f"{value!r} is not one of {models_listed()}", param, ctx)
        return name


@dataclass(frozen=True)
class StructureGroup:
    """Options for reading files: fields of Reading."""

    heading: ClassVar[str] = "Structure and force field"

    coordinates: tuple[Path, ...] = option(
        "Coordinates for a topology of AMBER, GROMACS or CHARMM: .rst7, .inpcrd, .ncrst, .nc, .gro or another "
        "structure. For several topologies give one for all, or one for each in their order.",
        "-c", like=Reading, metavar="FILE", essential=True,
    )  # fmt: skip
    parameters: tuple[Path, ...] = option("CHARMM parameter file for a .psf: .prm, .str.", like=Reading, metavar="FILE")
    model: int | None = option(
        "Number of the model to read, if the file has several.", like=Reading, type=click.IntRange(min=0),
        heading="Choosing atoms",
    )  # fmt: skip
    forcefield: str | None = option(
        "Force field: amber99sb (default), or a folder of PELE's Templates such as OPLS2005. Through OpenMM also "
        "amber14, ff14SB, ff19SB, charmm36 or XML files separated by commas.",
        like=Reading, metavar="NAME", essential=True,
    )  # fmt: skip
    allow_scripts: bool = option("Run Python scripts contained in XML force field files.", like=Reading)
    radii: str | None = option(
        "Set of radii. openmm-obc and pele apply to atoms that are not in a table of --obc, AMBER's sets to all atoms; "
        "pdb2pqr-... are PDB2PQR's radii by atom name, only for Poisson-Boltzmann; file uses the radii of the "
        "structure's files. Default: file if it has radii, else mbondi3 with gbn2, bondi with gbn, pele with PELE's "
        "force fields, openmm-obc with Amber99SB.",
        "--gb-radii", "--radii", like=Reading, type=SetOfRadii([*RADII_SETS, *PDB2PQR_SETS, FILE]),
    )  # fmt: skip
    ligand_file: tuple[Path, ...] = option(
        "Small molecule, .sdf, .mol2 or .smi, that provides parameters for matching residues without a template. If no "
        "selected residue matches, the (first) molecule is added to the structure. Can be given several times.",
        default=(), metavar="FILE", former=("--ligands",), essential=True,
    )  # fmt: skip
    ligand_forcefield: str = option(
        f"Force field of ligands without parameters: {' or '.join(ATOM_TYPES)} by AmberTools' antechamber, one of "
        "OpenFF by its toolkit, or a file with their parameters: .xml of OpenMM, .prmtop, a PELE template.",
        like=Reading,
        metavar="NAME",
    )
    ligand_charges: str = option(
        "Charges of ligands without parameters: MMFF94's, Gasteiger's, AM1-BCC, ABCG2, or those of their own files.",
        like=Reading,
        choices=list(CHARGES),
    )
    ligand_hydrogens: str = option(
        "Hydrogens of ligand files. given: the file contains all; add: complete the valences; formal charges are not "
        "changed.",
        like=Reading, choices=HYDROGENS,
    )  # fmt: skip
    ligand_ph: float | None = option(
        "Protonate ligands at this pH by the typical pKa of their groups, and add their hydrogens.",
        like=Reading,
        metavar="PH",
    )
    ligand_template: tuple[str, ...] = option(
        "SMILES, or code of the PDB's components (ccd:BEN), of a residue of the structure that has no template; "
        "hydrogens may be missing. Can be given several times.",
        default=(), metavar="SMILES",
    )  # fmt: skip
    templates: tuple[Path, ...] = option("PELE template, or a folder of templates.", like=Reading, metavar="PATH")
    obc: tuple[Path, ...] = option("OBC table, text or JSON.", like=Reading, metavar="FILE")
    pele_data: tuple[Path, ...] = option("PELE Data or DataLocal folder.", like=Reading, metavar="DIR")
    guess_radii: bool = option(
        "Use radii by element and bonds for atoms that are not in the OBC tables.", like=Reading, former=("--fallback",)
    )
    allow_missing_terminals: bool = option(
        "Treat incomplete chain ends as inner residues, as PELE does; otherwise the end's template is used without "
        "the missing atoms.",
        "--allow-missing-terminals/--no-allow-missing-terminals", like=Reading,
    )  # fmt: skip
    select: str | None = option(
        "Atoms to use, in the syntax of MDAnalysis and VMD: 'protein and not resname NAP', or an AMBER mask: "
        "':1-50@CA'. Other atoms need no parameters.",
        like=Reading, metavar="EXPR", heading="Choosing atoms", essential=True,
    )  # fmt: skip
    without: str | None = option(
        "Omit residues by name, such as HOH,NAP, or by kind: water, ion, ligand.", like=Reading, metavar="NAMES",
        heading="Choosing atoms",
    )  # fmt: skip
    only: str | None = option(
        "Use only these kinds: protein, nucleic, ligand, ion, water.", like=Reading, metavar="KINDS",
        heading="Choosing atoms",
    )  # fmt: skip


@dataclass(frozen=True)
class SolventGroup:
    """Options of the solvent: fields of SolventModel."""

    heading: ClassVar[str] = "Solvent"

    like: str | None = option(
        "Use another program's constants: dielectrics, Coulomb's constant, kappa, nonpolar term, cutoff of the Born "
        "integrals. Other options override them. amber: sander and pmemd (water 78.5, no surface). With LCPO surfaces "
        "mmpbsa.py: MMPBSA.py without decomposition (78.3); sander: MMPBSA.py with decomposition or use_sander=1 (80); "
        "gmx: gmx_MMPBSA (78.5). openmm: its applications. exact: CODATA constants, the default. pele: PELE. Without "
        "radii in the input, as in PDB files, those of AMBER's programs use the set of the GB model, such as mbondi2 "
        "for obc2 instead of openmm-obc, and pele uses PELE's.",
        choices=list(PRESETS), essential=True,
    )  # fmt: skip
    gb: str = option(
        "Generalized Born model, or its number in AMBER: obc2 or igb=5; `none` for no solvent.",
        like=SolventModel, type=GBModelName(list(GB_MODELS)), essential=True,
    )  # fmt: skip
    born_cutoff: float | None = option(
        "Ignore atoms beyond this distance when computing Born radii, as AMBER's rgbmax does, Angstrom; by default "
        "none.",
        like=SolventModel, metavar="A", former=("--rgb-max",),
    )  # fmt: skip
    solute_dielectric: float = option(
        "Relative permittivity inside the molecule.", like=SolventModel, show_default=True
    )
    solvent_dielectric: float = option("Relative permittivity of the solvent.", like=SolventModel, show_default=True)
    ionic_strength: float = option(
        "Concentration of a 1:1 salt, mol/L; PELE's default is 0.15.", like=SolventModel, show_default=True,
        essential=True,
    )  # fmt: skip
    temperature: float = option(
        "Temperature, K; used only with salt.", like=SolventModel, show_default=True, type=OneTemperature()
    )
    kappa_convention: str = option(
        "How the screening constant is computed from the ionic strength: Debye-Hueckel, as in sander, or as in OpenMM.",
        like=SolventModel, choices=list(KAPPAS),
    )  # fmt: skip
    gbn_convention: str = option(
        "Treat necks between tabulated radii, and sulphur and nucleic-acid oxygen of GBn2, as in OpenMM or sander.",
        like=SolventModel, choices=list(GBN_CONVENTIONS),
    )  # fmt: skip
    coulomb_constant: float = option(
        "Coulomb's constant, kcal A/(mol e^2): Amber's is 332.0522173, PELE's 332.0637.",
        like=SolventModel, show_default=True,
    )  # fmt: skip


@dataclass(frozen=True)
class SurfaceGroup:
    """Options of the nonpolar term: fields of SolventModel."""

    heading: ClassVar[str] = "Solvent"

    surface: str = option(
        "Nonpolar term: ace from Born radii, lcpo from the surface area.", default=SolventModel().surface,
        choices=list(SURFACES), essential=True,
    )  # fmt: skip
    surface_tension: float | None = option(
        "Surface tension of the nonpolar term, kcal/mol/A^2; by default 0.0054 for ace, 0.0072 for lcpo."
    )
    lcpo_unknown: str = option(
        "For atoms without LCPO parameters (Zn, Ca, Br, I): use those of carbon, with a note, as AMBER does, or stop "
        "with an error.",
        like=SolventModel, choices=LCPO_UNKNOWN,
    )  # fmt: skip


@dataclass(frozen=True)
class FramesGroup:
    """Options for a trajectory that replaces the positions of a structure."""

    heading: ClassVar[str] = "Models and trajectories"

    trajectory: tuple[Path, ...] = option(
        "Trajectory, used instead of the positions in IN: .nc, .dcd, .xtc, .trr, .mdcrd, .h5, .pdb or .cif. Can be "
        "given several times.",
        "-t", default=(), metavar="FILE", essential=True,
    )  # fmt: skip
    frames: str | None = option(
        "Frames to use, START:STOP:STEP, counted from 0 through all trajectories; -100: is the last hundred.",
        metavar="A:B:C", essential=True,
    )  # fmt: skip
    topology: Path | None = option(
        "Structure with all atoms of the trajectory, if IN has only some of them; --select chooses them.",
        metavar="FILE",
    )
    image: str | None = option(
        "auto makes molecules whole and brings them together if frames have a unit cell; none uses frames unchanged.",
        choices=IMAGES,
    )


@dataclass(frozen=True)
class RunGroup:
    """Options for precision and device."""

    heading: ClassVar[str] = "Devices and processes"

    precision: str = option("Working precision.", default=PRECISIONS[0], choices=PRECISIONS)
    device: str | None = option(
        "Device by its number in `pele-ocl devices`, or by part of its name; also PELE_OCL_DEVICE.", metavar="D",
        essential=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Workers:
    """Options for worker processes."""

    heading: ClassVar[str] = "Devices and processes"

    workers: int | None = option(
        "Number of processes on this machine, each with its own device or group of cores.",
        type=click.IntRange(min=1), metavar="N",
    )  # fmt: skip
    scheduler: str | None = option(
        "Dask cluster to compute on: tcp://HOST:PORT, or the scheduler's file.", metavar="ADDRESS"
    )


@dataclass(frozen=True)
class Shares(Workers):
    """Options for worker processes and shards, for commands whose results `merge` can merge."""

    heading: ClassVar[str] = "Devices and processes"

    shard: str | None = option(
        "Compute part K of N, for SLURM arrays, and write OUT.KofN; `pele-ocl merge` joins the parts.", metavar="K/N"
    )


@dataclass(frozen=True)
class ReportGroup:
    """Options for terminal output."""

    heading: ClassVar[str] = "Reports"

    as_json: bool = option("Print one JSON object instead of the table.", "--json", essential=True)
    verbose: bool = option("Print more: parameters, steps, times.", "-v")
