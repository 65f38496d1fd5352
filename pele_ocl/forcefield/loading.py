"""The built-in Amber99SB and a user's files collected into one force field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeVar

from .. import arguments
from ..atoms.radii import BONDI_SETS, RADII_SETS, tidy_set
from ..errors import InputError, ParameterError
from .library import Joined
from .links import Links
from .obc import Key, ObcTable, read_obc
from .openmm.names import names
from .origin import Origin
from .sources import (
    EMBEDDED,
    PeleData,
    embedded_links,
    embedded_radii,
    embedded_templates,
    find_pele_data,
    is_complete,
    is_protein_folder,
    kind_of_name,
    load_links,
    load_templates,
)
from .template import Kind, Template

K = TypeVar("K")
V = TypeVar("V")
Paths = Iterable[str | PathLike[str]]


class Collected(NamedTuple):
    """The fields of a ForceField that follow from files, by their names there."""

    name: str
    kind: Kind
    templates: Mapping[str, Template]
    radii: Mapping[Key, tuple[float, float]]
    radii_set: str
    origin: Origin
    links: Links


def collected(name: str | None, radii: str | None, templates: Paths, obc: Paths, pele_data: Paths) -> Collected:
    """The force field of a user's files, with what the built-in one completes; parameters of ForceField.load."""
    obc, templates = arguments.file_paths("obc", obc), arguments.file_paths("templates", templates)
    pele = find_pele_data([Path(root) for root in arguments.file_paths("pele_data", pele_data)], name)
    sets = [*map(load_templates, pele.templates), *map(_required, map(Path, templates))]
    given = _merged(sets)
    whole = is_complete(given) or any(map(is_protein_folder, sets))
    kind = _kind(name, pele, given, whole)
    own = {key: t if t.kind else replace(t, kind=kind) for key, t in given.items()}
    links = _merged(map(load_links, [*pele.templates, *map(Path, templates)]))
    tables = {str(path): read_obc(path) for path in obc}
    rows = _merged([*map(read_obc, pele.obc), *tables.values()])
    chosen, completed = _completing(radii, rows, whole)
    origin = Origin(
        tables=tables,
        rows=rows,
        completed_with=chosen if completed and radii is None and whole else "",
        undecided=frozenset(key for key, t in given.items() if t.kind is None),
        without_protein="" if whole or kind_of_name(pele.name) != "opls" else pele.name,
        given=frozenset(given),
    )
    return Collected(
        _label(pele, given) if whole else EMBEDDED if origin.without_protein else pele.name or name or EMBEDDED,
        kind,
        own if whole else Joined(own, embedded_templates()),
        {**completed, **rows},
        chosen,
        origin,
        links if whole else {**embedded_links(), **links},
    )


def _completing(radii: str | None, rows: ObcTable, whole: bool) -> tuple[str, ObcTable]:
    """The set of radii that is named, or goes without saying, and its rows where they complete a user's."""
    chosen = tidy_set(radii or ("pele" if whole else "openmm-obc"))
    arguments.choice("radii", chosen, RADII_SETS)
    is_needed = chosen not in BONDI_SETS and (radii is not None or ("ALA", "CA") not in rows)
    return chosen, embedded_radii(chosen) if is_needed else {}


def _merged(collections: Iterable[Mapping[K, V]]) -> dict[K, V]:
    """Later templates or rows win."""
    return {key: value for collection in collections for key, value in collection.items()}


def _required(path: Path) -> dict[str, Template]:
    """Templates that a user named; PELE's own folders may be empty, these not."""
    templates = load_templates(path)
    if not templates:
        raise InputError(f"{path}: there are no templates in this folder; give a folder of IMPACT templates")
    return templates


def _kind(name: str | None, pele: PeleData, given: Mapping[str, Template], whole: bool) -> Kind:
    """The kind of a force field: that of its alanine if it is a whole one, else that of the built-in one."""
    if whole:
        return given["ALA"].kind or "amber"
    if name is not None and not pele.templates and name.lower() != EMBEDDED:
        raise ParameterError(
            f"there is no force field '{name}' in what was given; {EMBEDDED} is built in, "
            f"OpenMM brings {', '.join(names())}, others come from the folders given with --templates or "
            "--pele-data"
        )
    return "amber"


def _label(pele: PeleData, given: Mapping[str, Template]) -> str:
    """The name of a whole force field of the user: that of its folder."""
    if pele.name:
        return pele.name
    folder = Path(given["ALA"].source).resolve().parent
    return folder.parent.name if folder.name == "Protein" else folder.name
