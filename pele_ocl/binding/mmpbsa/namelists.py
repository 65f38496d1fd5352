"""Read input files of MMPBSA.py and gmx_MMPBSA: namelists, and which variables are used, ignored or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, nan

from ...common.errors import FormatError, InputError
from ...common.inputfile import InputFile
from ...common.textfiles import lines, quoted
from ...gb_models import GB_MODELS
from ...gb_models.solvent_model import SolventModel
from ...pb_model import EQUATIONS
from ..poisson_boltzmann import PBSolvent

STRIP_MASK = ":WAT,Cl*,CIO,Cs+,IB,K*,Li+,MG*,Na+,Rb+,CS,RB,NA,F,CL"  # MMPBSA.py's default
_GB = {model.igb: model.name for model in GB_MODELS.values() if model.igb is not None and not model.vacuum}
CHARMM_RADII = "charmm_radii"
_RADII = {
    1: "bondi", 2: "mbondi", 3: "mbondi2", 4: "mbondi3", 5: "mbondi_pb2", 6: "mbondi_pb3", 7: CHARMM_RADII,
}  # fmt: skip
_OTHERS = {
    "nmode": "normal modes", "rism": "3D-RISM", "gbnsr6": "GBNSR6",
}  # fmt: skip
_ALIASES = {"decomposition": "decomp"}  # names of namelists in gmx_MMPBSA's own files

# Variables by namelist: _USED for those that are used, None for those without effect on results, else the only
# supported value.
_USED = "used"
_GENERAL: Mapping[str, object] = {
    **dict.fromkeys(
        ("startframe", "endframe", "interval", "verbose", "strip_mask", "receptor_mask", "ligand_mask", "use_sander",
         "pbradii", "entropy", "qh_entropy", "interaction_entropy", "c2_entropy", "temperature", "ie_segment",
         "entropy_temp", "entropy_seg", "keep_files"),
        _USED,
    ),
    **dict.fromkeys(
        ("debug_printlevel", "netcdf", "search_path", "full_traj", "sys_name", "forcefields", "ions_parameters",
         "assign_chainid", "exp_ki", "gmx_path", "solvated_trajectory", "overwrite_data", "overwrite"),
    ),
}  # fmt: skip
_OF_GB: Mapping[str, object] = {
    **dict.fromkeys(("igb", "saltcon", "surften", "surfoff", "intdiel", "extdiel", "molsurf"), _USED),
    **dict.fromkeys(
        ("probe", "msoffset", "qm_theory", "qm_residues", "qmcharge_com", "qmcharge_rec", "qmcharge_lig", "qmcut",
         "scfconv", "peptide_corr", "writepdb", "verbosity", "arad_method", "com_qmmask", "rec_qmmask", "lig_qmmask"),
    ),
    "ifqnt": 0, "alpb": 0,
}  # fmt: skip
_OF_PB: Mapping[str, object] = {
    **dict.fromkeys(
        ("istrng", "indi", "exdi", "prbrad", "iprob", "scale", "inp", "radiopt", "npbopt", "accept", "cavity_surften",
         "cavity_offset"),
        _USED,
    ),
    # Variables of pbsa's grid, surface and solver, and of inp=2.
    **dict.fromkeys(
        ("fillratio", "linit", "smoothopt", "solvopt", "nbuffer", "nfocus", "fscale", "bcopt", "eneopt", "frcopt",
         "scalec", "cutfd", "cutnb", "arcres", "sprob", "vprob", "rhow_effect", "use_rmin", "use_sav", "maxsph",
         "maxarcdot", "npbverb", "decompopt", "emem", "mprob", "mthick", "mctrdz", "poretype",
         "npbgrid", "nsnba"),
    ),
    "ipb": 2, "sasopt": 0, "memopt": 0, "sander_apbs": 0,
}  # fmt: skip
_OF_DECOMP: Mapping[str, object] = dict.fromkeys(("idecomp", "dec_verbose", "print_res", "csv_format"), _USED)
_OF_ALANINE: Mapping[str, object] = {
    **dict.fromkeys(
        ("mutant_only", "mutant_res", "cas_intdiel", "intdiel_nonpolar", "intdiel_polar", "intdiel_positive",
         "intdiel_negative"),
        _USED,
    ),
    "mutant": "ALA",
}  # fmt: skip
_KNOWN = {"general": _GENERAL, "gb": _OF_GB, "pb": _OF_PB, "decomp": _OF_DECOMP, "alanine_scanning": _OF_ALANINE}
_NAMELIST = re.compile(r"&(\w+)\s*(.*)")
_END = re.compile(r"(^|[\s,])(/|&end)\s*$", re.IGNORECASE)
_VALUE = re.compile(r"""(\w+)\s*=\s*("[^"]*"|'[^']*'|.*?)(?=[\s,]*\b\w+\s*=|[\s,]*$)""", re.DOTALL)
_OF_VOLUMES = 0.0378, -0.5692  # cavity_surften and cavity_offset for inp=2, the defaults for any inp
_SHORTEST = 4  # minimum number of letters of an abbreviated variable


@dataclass(frozen=True)
class Decomp:
    """&decomp: idecomp as in sander, which tables to print, the residues, and whether to write CSV."""

    idecomp: int
    verbose: int
    print_res: str
    csv: bool


@dataclass(frozen=True)
class Alanine:
    """&alanine_scanning: residues in gmx_MMPBSA's notation, and dielectric constants by residue type, or None."""

    residues: tuple[str, ...]
    dielectrics: Mapping[str, float] | None
    mutant_only: bool


@dataclass(frozen=True)
class Entropies:
    """Requested entropies of gmx_MMPBSA. temperature : K; segment : percentage of frames to use, from the end"""

    interaction: bool
    c2: bool
    temperature: float
    segment: float


@dataclass(frozen=True)
class PBMethod:
    """&pb: solvent constants, offset added to each surface energy (kcal/mol), and the PBSolvent."""

    model: SolventModel
    surface_offset: float
    solvent: PBSolvent


@dataclass(frozen=True)
class MmpbsaInput:
    """Content of an mmpbsa.in file.

    text : its lines; frames : frames to use, as in `trajectory`; verbose : which tables to print, 0 to 2
    model : SolventModel; surface_offset : offset added to each surface energy, kcal/mol
    gb_radii : radii set for gmx_MMPBSA's topologies; strip_mask, masks : masks of MMPBSA.py, masks None if not given
    decomp, alanine, entropies : None if not requested; keeps_files : whether intermediate files are kept
    notes : messages about ignored settings
    pb : solvent of &pb, None for &gb; further : &pb in a file that also has &gb, computed second
    """

    text: tuple[str, ...]
    frames: str
    verbose: int
    model: SolventModel
    surface_offset: float
    gb_radii: str
    strip_mask: str
    masks: tuple[str, str] | None
    decomp: Decomp | None
    alanine: Alanine | None
    entropies: Entropies | None
    keeps_files: bool
    notes: tuple[str, ...] = field(default=())
    pb: PBSolvent | None = None
    further: PBMethod | None = None

    @property
    def methods(self) -> tuple[MmpbsaInput, ...]:
        """Split the input by method, &gb and &pb."""
        if self.further is None:
            return (self._without_pairs(),)
        of = self.further
        other = replace(
            self, model=of.model, surface_offset=of.surface_offset, pb=of.solvent, further=None
        )._without_pairs()  # fmt: skip
        return replace(self, further=None), other

    def _without_pairs(self) -> MmpbsaInput:
        """Return the input without decomposition by pairs if it uses Poisson-Boltzmann, which does not support it."""
        has_pairs = self.pb is not None and self.decomp is not None and self.decomp.idecomp > 2
        return replace(self, decomp=None) if has_pairs else self


def read_input(source: InputFile, of_gromacs: bool) -> MmpbsaInput:
    """Read an mmpbsa.in file.

    of_gromacs : whether the file is for gmx_MMPBSA, which has other defaults

    Raises FormatError if the file has no namelists, and InputError for unsupported variables.
    """
    text = [line.rstrip("\n") for line in lines(source, "MMPBSA input")]
    found = _namelists(source, text)
    notes = list[str]()
    others = [name for name in found if name in _OTHERS]
    if not {"gb", "pb"} & set(found):
        asked = f"&{others[0]} ({_OTHERS[others[0]]}) is not supported" if others else "it has no &gb and no &pb"
        raise InputError(f"{source}: {asked}; MM/GBSA needs the namelist &gb, MM/PBSA &pb")
    for name in others:
        notes.append(f"&{name} ({_OTHERS[name]}) is not supported, and its results are left out")
    for name, values in found.items():
        _refuse_values(source, name, values)
    general, gb = _Values(source, found.get("general", {})), _Values(source, found.get("gb", {}))
    entropies = _entropies(source, general, of_gromacs)
    quasi = "qh_entropy" if general.whole("qh_entropy", 0) else "entropy"
    if general.whole(quasi, 0) == 1:
        notes.append(f"{quasi}: the quasi-harmonic entropy is not supported, and is left out")
    if gb.whole("molsurf", 0):
        notes.append("molsurf=1: ESURF is computed from LCPO areas, and differs from that of molsurf")
    decomp = _decomp(source, found["decomp"], of_gromacs) if "decomp" in found else None
    if decomp is not None and decomp.idecomp > 2 and decomp.verbose > 1:
        notes.append("bonded energies are on the diagonal of pairs of residues, where sander omits them")
    if decomp is not None:
        notes.append("Non-Polar Solv. of decompositions is computed from LCPO areas, whereas sander uses ICOSA")
    # If MMPBSA.py uses sander, the dielectric constant of water differs.
    by_sander = decomp is not None or bool(general.whole("use_sander", 0))
    program = "gmx" if of_gromacs else "sander" if by_sander else "mmpbsa.py"
    pb = _pb_method(_Values(source, found["pb"]), of_gromacs, notes) if "pb" in found else None
    if pb is not None and decomp is not None and decomp.idecomp > 2:
        notes.append("Poisson-Boltzmann energies cannot be decomposed by pairs; use idecomp=1 or 2")
    mask = general.text("receptor_mask"), general.text("ligand_mask")
    if (mask[0] is None) != (mask[1] is None):
        raise InputError(f"{source}: receptor_mask and ligand_mask must be given together; give both or none")
    start, end = general.whole("startframe", 1), general.whole("endframe", 9999999)
    step = general.whole("interval", 1)
    if start < 1 or end < start or step < 1:
        raise InputError(f"{source}: startframe={start}, endframe={end}, interval={step} choose no frame")
    radii = general.whole("pbradii", 3)
    if of_gromacs and radii not in _RADII:
        raise InputError(f"{source}: PBRadii={radii} is not supported; choose 1 to {max(_RADII)}")
    if of_gromacs and _RADII[radii] == CHARMM_RADII and "gb" in found:
        raise InputError(f"{source}: PBRadii={radii} ({CHARMM_RADII}) is only for &pb; leave out &gb, or choose 1 to 6")
    method = PBMethod(_model(source, gb, program), gb.number("surfoff", 0.0), PBSolvent()) if pb is None else pb
    if "gb" in found:
        method = replace(method, model=_model(source, gb, program), surface_offset=gb.number("surfoff", 0.0))
    return MmpbsaInput(
        tuple(text), f"{start - 1}:{end}:{step}", general.whole("verbose", 1), method.model,
        method.surface_offset, _RADII.get(radii, ""), general.text("strip_mask") or STRIP_MASK,
        None if mask[0] is None or mask[1] is None else (mask[0], mask[1]),
        decomp, _alanine(source, found["alanine_scanning"]) if "alanine_scanning" in found else None, entropies,
        general.whole("keep_files", 1) > 0, tuple(notes), method.solvent if "gb" not in found else None,
        pb if "gb" in found else None,
    )  # fmt: skip


def _namelists(source: InputFile, text: list[str]) -> dict[str, dict[str, str]]:
    """Return the variables by namelist, in lower case; comments and text before the first namelist are ignored."""
    found = dict[str, dict[str, str]]()
    name, parts = "", list[str]()
    for number, line in enumerate(text, 1):
        line = _without_comment(line).strip()
        opening = _NAMELIST.fullmatch(line)
        if opening is not None and opening[1].lower() != "end":
            if name:
                raise FormatError(f"{source}:{number}: &{opening[1]} begins before &{name} ends; end it with a line /")
            name, line = opening[1].lower(), opening[2]
            name = _ALIASES.get(name, name)
            if name not in _KNOWN and name not in _OTHERS:
                known = ", ".join(f"&{of}" for of in (*_KNOWN, *_OTHERS))
                raise InputError(f"{source}:{number}: &{name} is not a namelist of MMPBSA.py; those known are {known}")
            if name in found:
                raise FormatError(f"{source}:{number}: &{name} occurs twice; leave one of the two")
        if not name:
            continue
        ending = _END.search(line)
        parts.append(line if ending is None else line[: ending.start()])
        if ending is not None:
            found[name] = _variables(" ".join(parts), source, name)
            name, parts = "", []
    if name:
        raise FormatError(f"{source}: the namelist &{name} has no end; end it with a line /")
    if not found:
        raise FormatError(f"{source}: has no namelist such as &general; it is not an input file of MMPBSA.py")
    return found


def _without_comment(line: str) -> str:
    """Remove a comment, which starts at # or at ! before a word, outside quotes; masks contain ! within words."""
    quote = ""
    for place, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#" or (letter == "!" and f" {line}"[place] in " \t,"):
            return line[:place]
    return line


def _variables(text: str, source: InputFile, name: str) -> dict[str, str]:
    pairs = [(found[1].lower(), found[2].strip(" ,").strip("\"'")) for found in _VALUE.finditer(text)]
    rest = _VALUE.sub(" ", text).strip(" ,\t")
    if rest:
        raise FormatError(f"{source}: {quoted(rest)} in &{name} is not a variable with a value, such as igb=5")
    values, known = dict[str, str](), _KNOWN.get(name)
    for key, value in pairs:
        full = [key]
        if known is not None:
            full = [of for of in known if of == key]
            full = full or [of for of in known if len(key) >= _SHORTEST and of.startswith(key)]
        if len(full) != 1:
            raise InputError(f"{source}: {key} of &{name} is not a known variable; leave it out")
        if full[0] in values:
            raise FormatError(f"{source}: {full[0]} of &{name} is given twice; leave one of the two")
        values[full[0]] = value
    return values


def _refuse_values(source: InputFile, name: str, values: Mapping[str, str]) -> None:
    """Raise InputError for a variable with an unsupported value."""
    for key, value in values.items():
        only = _KNOWN.get(name, {}).get(key)
        if key == "mutant" and value.upper() == "A":
            continue
        if only not in (None, _USED) and value.upper() != str(only):
            raise InputError(f"{source}: {key}={value} of &{name} is not supported; {key}={only} is")


@dataclass(frozen=True)
class _Values:
    """Variables of a namelist as numbers and strings."""

    source: InputFile
    of: Mapping[str, str]

    def text(self, name: str) -> str | None:
        return self.of.get(name)

    def number(self, name: str, default: float) -> float:
        if name not in self.of:
            return default
        try:
            value = float(self.of[name].lower().replace("d", "e"))
        except ValueError:
            value = nan
        if not isfinite(value):
            raise FormatError(f"{self.source}: {name} is {quoted(self.of[name])}; expected a number")
        return value

    def whole(self, name: str, default: int) -> int:
        value = self.number(name, default)
        if value != int(value):
            raise FormatError(f"{self.source}: {name} is {quoted(self.of[name])}; expected a whole number")
        return int(value)


def _model(source: InputFile, gb: _Values, program: str) -> SolventModel:
    igb = gb.whole("igb", 5)
    if igb not in _GB:
        raise InputError(f"{source}: igb={igb} is not supported; choose {', '.join(map(str, _GB))}")
    changes: dict[str, float | str | None] = {"gb": _GB[igb], "ionic_strength": gb.number("saltcon", 0.0)}
    constants = {
        "saltcon": "ionic_strength", "surften": "surface_tension", "intdiel": "solute_dielectric",
        "extdiel": "solvent_dielectric",
    }  # fmt: skip
    for name, ours in constants.items():
        if name in gb.of:
            changes[ours] = value = gb.number(name, 0.0)
            if value < 0 or (value == 0 and name.endswith("diel")):
                raise InputError(f"{source}: {name}={value:g}; it cannot be negative, nor a dielectric constant 0")
    return SolventModel.like(program, **changes)


def _pb_method(pb: _Values, of_gromacs: bool, notes: list[str]) -> PBMethod:
    """Return the settings of &pb. notes : list to which messages are appended

    Raises InputError for unsupported radii and nonpolar terms.
    """
    source = pb.source
    inp, radiopt = pb.whole("inp", 1), pb.whole("radiopt", 0 if of_gromacs else 1)
    if of_gromacs and radiopt == 1:
        radiopt = 0
        notes.append("radiopt=0 is used instead of radiopt=1, as by gmx_MMPBSA: the radii are those of the topology")
    for name, value, what in (
        ("inp", inp, "none and areas of the surface"), ("radiopt", radiopt, "radii of topologies and of Tan and Luo")
    ):  # fmt: skip
        if value not in (0, 1):
            raise InputError(f"{source}: {name}={value} of &pb is not supported; {name}=0 and 1 ({what}) can be done")
    if "inp" not in pb.of and not of_gromacs:
        notes.append("inp=1 (surface areas) is used instead of MMPBSA.py's default, which is not supported")
    tension, offset = pb.number("cavity_surften", _OF_VOLUMES[0]), pb.number("cavity_offset", _OF_VOLUMES[1])
    if inp and (tension, offset) != (of := _for_areas(tension, offset)):
        tension, offset = of
        notes.append(f"cavity_surften={tension:g} and cavity_offset={offset:g}, as pbsa uses with inp=1")
    constants = {
        "istrng": ("ionic_strength", 0.0), "indi": ("solute_dielectric", 1.0),
        "exdi": ("solvent_dielectric", 80.0), "prbrad": ("probe_radius", 1.4),
    }  # fmt: skip
    changes: dict[str, float | str | None] = {ours: pb.number(name, of) for name, (ours, of) in constants.items()}
    changes |= {"surface": "lcpo", "surface_tension": tension} if inp else {"surface": "none"}
    scale, accept = pb.number("scale", 2.0), pb.number("accept", 1e-3)
    if scale <= 0 or accept <= 0:
        raise InputError(f"{source}: scale={scale:g}, accept={accept:g} of &pb; both must be above 0")
    nonlinear = pb.whole("npbopt", 0)
    if nonlinear not in (0, 1):
        raise InputError(f"{source}: npbopt={nonlinear} of &pb; choose 0, the linear equation, or 1, the nonlinear one")
    solvent = PBSolvent(
        EQUATIONS[nonlinear], ion_radius=pb.number("iprob", 2.0), spacing=1 / scale,
        tolerance=max(1e-14, min(PBSolvent.tolerance, accept)), radii=("own", "tan-luo")[radiopt],
    )  # fmt: skip
    notes.append(
        f"EPB is solved as pele-ocl pb does, on a grid that ends {solvent.padding:g} A from the complex, or on a "
        "part of it that ends as far from a small part of the complex; "
        "pbsa's own settings of grid, surface and solver have no effect"
    )
    if changes["ionic_strength"]:
        notes.append("EPB includes the potential of the salt's ions, which pbsa omits (eneopt=2, its default)")
    if inp:
        notes.append("ENPOLAR is computed from LCPO areas, whereas pbsa uses its own")
    return PBMethod(SolventModel.like("mmpbsa.py", **changes), offset if inp else 0.0, solvent)


def _for_areas(tension: float, offset: float) -> tuple[float, float]:
    """Replace default constants, which are for inp=2, by those that pbsa uses with inp=1."""
    return 0.005 if tension == _OF_VOLUMES[0] else tension, 0.0 if offset == _OF_VOLUMES[1] else offset


def _decomp(source: InputFile, values: Mapping[str, str], of_gromacs: bool) -> Decomp:
    of = _Values(source, values)
    idecomp, verbose = of.whole("idecomp", 0), of.whole("dec_verbose", 0)
    if idecomp not in (1, 2, 3, 4) or verbose not in (0, 1, 2, 3):
        raise InputError(f"{source}: idecomp must be 1 to 4 and dec_verbose 0 to 3, not {idecomp} and {verbose}")
    print_res = of.text("print_res") or ("within 6" if of_gromacs else "all")
    return Decomp(idecomp, verbose, print_res, bool(of.whole("csv_format", 1)) or of_gromacs)


def _entropies(source: InputFile, general: _Values, of_gromacs: bool) -> Entropies | None:
    """Return the requested entropies, None without any; entropy=2 is an old name of the interaction entropy."""
    older = of_gromacs and general.whole("entropy", 0) == 2
    interaction, c2 = bool(general.whole("interaction_entropy", 0)) or older, bool(general.whole("c2_entropy", 0))
    temperature = general.number("temperature", general.number("entropy_temp", 298.15))
    segment = general.number("ie_segment", general.number("entropy_seg", 25))
    if temperature <= 0 or not 0 < segment <= 100:
        raise InputError(
            f"{source}: temperature={temperature:g}, ie_segment={segment:g}; expected a temperature above 0 K and 1 "
            "to 100 percent"
        )
    return Entropies(interaction, c2, temperature, segment) if interaction or c2 else None


def _alanine(source: InputFile, values: Mapping[str, str]) -> Alanine:
    of = _Values(source, values)
    dielectrics = {
        kind: of.number(f"intdiel_{kind}", default)
        for kind, default in (("nonpolar", 1.0), ("polar", 3.0), ("positive", 5.0), ("negative", 5.0))
    }
    residues = re.split(r"[\s,;]+", of.text("mutant_res") or "")
    return Alanine(
        tuple(word for word in residues if word), dielectrics if of.whole("cas_intdiel", 0) else None,
        bool(of.whole("mutant_only", 0)),
    )  # fmt: skip
