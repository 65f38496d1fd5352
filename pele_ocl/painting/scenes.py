"""Session scripts for PyMOL, ChimeraX and VMD, with a structure, its surface coloured by a map, and a colour bar.

Scripts refer to their files by relative paths, and change to their folder if the program does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePath
from typing import NamedTuple

from ..atoms import Atoms
from ..common.arguments import choice
from ..common.errors import FormatError
from ..common.inputfile import InputFile
from ..common.writing import refuse_target, replacing
from ..formats import structure_suffix
from ..formats.registry import COMPRESSED, map_suffix
from .surface import PROBE

_OTHER = re.compile(r"[^A-Za-z0-9_ .+/-]", re.ASCII)  # characters not allowed in scripts; / separates folders


@dataclass(frozen=True)
class Scene:
    """A structure and a map, as paths relative to the script.

    end : the colours span -end to end, in the unit of the map; quantity : name of the map's values
    """

    structure: str
    map_: str
    end: float
    unit: str
    quantity: str
    title: str


@dataclass(frozen=True)
class Viewer:
    """A molecular viewer.

    name : name of the program; suffix : suffix of its scripts; write : function that returns the script of a scene
    maps, structures : supported suffixes, maps in order of preference; gzip : whether structures may end in .gz
    """

    name: str
    suffix: str
    write: Callable[[Scene], list[str]]
    maps: tuple[str, ...]
    structures: tuple[str, ...]
    gzip: bool = True

    def reads(self, structure: str | PathLike[str]) -> bool:
        """Return whether the program supports a structure file, by its suffix."""
        packed = Path(structure).suffix.lower()
        is_unpacked = packed not in COMPRESSED or (packed == ".gz" and self.gzip)
        return is_unpacked and structure_suffix(structure) in self.structures


class SceneFiles(NamedTuple):
    """Files of a scene: script, map and structure. is_own : whether the structure must be written"""

    script: Path
    map_: Path
    structure: Path
    is_own: bool


def scene_files(
    program: str, structure: str | PathLike[str] | None, maps: Sequence[Path], is_whole: bool = True
) -> SceneFiles:  # fmt: skip
    """Choose the map and the file names for a script, which is written next to the map.

    If the program cannot read the structure, or only part of it is shown, a PDB file is written next to the map.

    program : a key of PROGRAMS; structure : the structure file, None for Atoms
    is_whole : whether exactly the atoms of the first model in the file are shown

    Raises FormatError if the program supports none of the maps, and for file names not allowed in scripts.
    """
    of = PROGRAMS[program]
    fitting = [each for known in of.maps for each in maps if map_suffix(each) == known]
    if not fitting:
        raise FormatError(
            f"a scene for {of.name} needs a map in a format that it reads: "
            f"give `output` with the suffix {' or '.join(of.maps)}"
        )
    map_ = fitting[0]
    stem = map_.name[: -len(map_suffix(map_) or "")]
    is_own = structure is None or not is_whole or not of.reads(structure)
    shown = map_.with_name(f"{stem}-atoms.pdb") if structure is None or is_own else Path(structure)
    for each in (shown, map_):
        _relative(each, map_.parent.resolve())
    return SceneFiles(map_.with_name(stem + of.suffix), map_, shown, is_own)


def require_scenes(
    programs: Sequence[str], structure: Path | None, maps: Sequence[Path], is_whole: bool = True
) -> tuple[Path, ...]:  # fmt: skip
    """Return the files that `write_scenes` will write. Raises FormatError if one cannot be written."""
    written = dict[Path, None]()
    for program in programs:
        choice("scene", program, tuple(PROGRAMS))
        files = scene_files(program, structure, maps, is_whole)
        written |= dict.fromkeys([files.structure, files.script] if files.is_own else [files.script])
    for path in written:
        refuse_target(path, [] if structure is None else [structure])
    return tuple(written)


def write_scenes(
    programs: Sequence[str], structure: InputFile | None, atoms: Atoms, maps: Sequence[Path], end: float, unit: str,
    quantity: str = "potential", is_whole: bool = True,
) -> tuple[Path, ...]:  # fmt: skip
    """Write scripts for several programs, each next to its map. Returns all files written.

    structure : the structure file, None for Atoms; atoms : written as a PDB file if a program needs one
    end, unit, quantity : as in `write_scene`; is_whole : as in `scene_files`

    Raises FormatError as in `scene_files`, and if a file cannot be written.
    """
    inputs, written = [] if structure is None else [structure], dict[Path, None]()
    for program in programs:
        files = scene_files(program, None if structure is None else structure.path, maps, is_whole)
        if files.is_own and files.structure not in written:
            atoms.save(files.structure)
            written[files.structure] = None
        written[write_scene(program, files.structure, files.map_, end, unit, inputs, quantity)] = None
    return tuple(written)


def write_scene(
    program: str, structure: str | PathLike[str], map_: Path, end: float, unit: str,
    inputs: Iterable[str | PathLike[str]] = (), quantity: str = "potential",
) -> Path:  # fmt: skip
    """Write the script for a program next to a map file. Returns its path.

    end : the colours span -end to end, in the unit of the map; inputs : files that must not be overwritten
    quantity : name of the map's values, such as "screened Coulomb potential"

    Raises FormatError as in `scene_files`, and if the script cannot be written.
    """
    path = scene_files(program, structure, [map_]).script
    folder = path.parent.resolve()
    own, beside = (_relative(each, folder) for each in (structure, map_))
    unit, quantity = (_OTHER.sub("_", text) for text in (unit, quantity))
    what = f"{quantity[:1].upper()}{quantity[1:]}"
    title = f"{what} of {PurePath(own).name} at its surface, -{end:g} (red) to {end:g} (blue) {unit}".rstrip()
    text = "\n".join(PROGRAMS[program].write(Scene(own, beside, end, unit, quantity, title)))
    with replacing(path, inputs) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    return path


def _relative(path: str | PathLike[str], folder: Path) -> str:
    """Return the path relative to a folder, with slashes. Raises FormatError for characters not allowed in scripts.

    Some characters have a meaning even in quotes and comments: PyMOL begins a new command at each semicolon.
    """
    relative = PurePath(os.path.relpath(Path(path).resolve(), folder)).as_posix()
    if _OTHER.search(relative):
        raise FormatError(
            f"{path}: a scene cannot contain this file name, because programs interpret some characters; use only "
            "the letters a to z, digits, blanks and _ . + - in its name and folders"
        )
    return relative


def _pymol(scene: Scene) -> list[str]:
    ramp = "ramp_" + re.sub(r"\W+", "_", f"{scene.quantity} {scene.unit or 'unit'}")
    return [
        f"# {scene.title}. Written by pele-ocl; open it as `pymol FILE`.",
        "/import os; cmd.cd(os.path.dirname(os.path.abspath(__script__)))",
        "set normalize_ccp4_maps, 0",
        f"/cmd.load({scene.structure!r}, 'molecule')",
        f"/cmd.load({scene.map_!r}, 'potential')",
        "hide everything, molecule",
        "show cartoon, molecule",
        "show sticks, molecule and not polymer and not solvent",
        f"ramp_new {ramp}, potential, [-{scene.end:g}, 0, {scene.end:g}], [red, white, blue]",
        "set surface_ramp_above_mode, 1",  # value at the probe's centre, solvent_radius outside the surface
        f"set solvent_radius, {PROBE:g}",
        f"set surface_color, {ramp}, molecule",
        "show surface, molecule and not solvent",
        "orient molecule",
    ]


def _chimerax(scene: Scene) -> list[str]:
    end = f"{scene.end:g}"
    return [
        f"# {scene.title}. Written by pele-ocl; open it in ChimeraX, which closes other models.",
        "close",
        f'open "{scene.structure}"',
        f'open "{scene.map_}"',
        "hide #2 models",
        f"surface #1 probeRadius {PROBE:g}",
        f"color electrostatic #1 map #2 palette red:white:blue range -{end},{end} offset {PROBE:g}",
        f"key red:-{end} white:0 blue:{end}",
        f'2dlabels text "{scene.quantity}, {scene.unit or "unit not given"}" xpos 0.55 ypos 0.13 size 16',
        "view",
    ]


def _vmd(scene: Scene) -> list[str]:
    return [
        f"# {scene.title}. Written by pele-ocl; open it as `vmd -e FILE`.",
        f"# VMD uses the values on the surface itself, not {PROBE:g} A outside, as pages and the other programs do.",
        "set here [file dirname [file normalize [info script]]]",
        f"mol new [file join $here {{{scene.structure}}}] waitfor all",
        f"mol addfile [file join $here {{{scene.map_}}}] waitfor all",
        f"mol rename top {{{scene.title}}}",
        "mol delrep 0 top",
        "mol selection {all}",
        "mol representation Lines",
        "mol color Name",
        "mol addrep top",
        "mol selection {not water}",
        f"mol representation Surf {PROBE:g} 0",
        "mol color Volume 0",
        "mol material Opaque",
        "mol addrep top",
        f"mol scaleminmax top 1 -{scene.end:g} {scene.end:g}",
        "color scale method RWB",
        "color scale midpoint 0.5",
        "display projection Orthographic",
    ]


_ALL_READ = (".pdb", ".ent", ".cif", ".pqr", ".mol2", ".gro")
PROGRAMS = {
    "pymol": Viewer("PyMOL", ".pml", _pymol, (".dx", ".mrc"), (*_ALL_READ, ".mmcif", ".sdf")),
    "chimerax": Viewer("ChimeraX", ".cxc", _chimerax, (".mrc", ".dx", ".ccp4", ".map"), (*_ALL_READ, ".mmcif", ".sdf")),
    "vmd": Viewer("VMD", ".vmd", _vmd, (".dx",), _ALL_READ, gzip=False),
}
