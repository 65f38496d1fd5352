"""Sources of a force field: the built-in Amber99SB, files and directories, and PELE's Data directories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..atoms.chemistry import AMINO_ACIDS
from ..atoms.radii import BONDI_SETS, gb_set
from ..common import arguments
from ..common.errors import FormatError, InputError, ParameterError
from ..common.installation import shipped
from ..common.notes import Note
from ..common.textfiles import lines
from .links import LINK_FILES, Link, LinkKey, Links, read_links
from .obc import Key, ObcTable, is_obc, lookup, read_obc
from .openmm.names import names
from .templates import Kind, Template, is_template, read_template


class Library(Mapping[str, Template]):
    """Templates in a directory by name, read on access because a structure needs only a few of them.

    folder : directory that contains only templates and link files, also in subdirectories
    kind : kind of templates whose kind is unknown
    """

    def __init__(self, folder: Path, kind: Kind) -> None:
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name not in LINK_FILES)
        self._files = {file.name.upper(): file for file in files}
        self._kind: Kind = kind
        self._read: dict[str, Template] = {}

    def __getitem__(self, name: str) -> Template:
        if name not in self._read:
            template = read_template(self._files[name])
            self._read[name] = template if template.kind else replace(template, kind=self._kind)
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


class Joined(Mapping[str, Template]):
    """Templates of several mappings. Earlier mappings have priority."""

    def __init__(self, *parts: Mapping[str, Template]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Template:
        part = next((part for part in self._parts if name in part), None)
        if part is None:
            raise KeyError(name)
        return part[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for part in self._parts for name in part))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, eq=False)
class Origin:
    """Files of the user, for notes.

    tables : OBC tables by file
    rows : rows of all tables of the user, including PELE's directories
    completed_with : built-in radii that complete the user's force field by default, "" if none
    undecided : names of templates of unknown kind
    without_protein : name of a force field in PELE's directories that contains only ligands, "" if none
    given : names of the user's templates
    """

    tables: Mapping[str, ObcTable] = field(default_factory=dict)
    rows: ObcTable = field(default_factory=dict)
    completed_with: str = ""
    undecided: frozenset[str] = frozenset()
    without_protein: str = ""
    given: frozenset[str] = frozenset()

    def notes(self, used: Sequence[Template], kind: Kind, radii: Mapping[Key, tuple[float, float]]) -> tuple[str, ...]:
        """Return notes about the parameters of the templates used by a structure."""
        return tuple(self._notes(used, kind, radii))

    @property
    def about_radii(self) -> tuple[str, ...]:
        """Note that built-in radii complete the user's force field by default, if they do."""
        if not self.completed_with:
            return ()
        return (
            "the force field has no complete OBC table, so built-in radii "
            f"({self.completed_with}) were used; give a table with `obc`, or choose a set of radii",
        )

    def _notes(self, used: Sequence[Template], kind: Kind, radii: Mapping[Key, tuple[float, float]]) -> Iterator[str]:
        keys = [(template.name, atom) for template in used for atom in template.names]
        for file, table in self.tables.items():
            if not any(lookup(table, *key) for key in keys):
                yield f"no row of {file} was used, because none matches an atom of the structure"
        if self.completed_with and any(lookup(self.rows, *key) is None for key in keys if lookup(radii, *key)):
            yield from self.about_radii
        if self.without_protein and not all(template.name in self.given for template in used):
            yield Note(
                f"the folder of {self.without_protein} has no proteins, so templates of the built-in Amber99SB were "
                "used for them; also give PELE's Data folder with `pele_data`",
                code="borrowed_templates",
            )
        undecided = sorted(template.name for template in used if template.name in self.undecided)
        if undecided:
            length = "R*" if kind == "amber" else "sigma"
            named = ", ".join(undecided)
            yield Note(
                f"it is unknown whether the lengths of {named} are R* or sigma; they were treated as {length}",
                code="lengths",
            )


EMBEDDED = "amber99sb"
_HISTIDINES = frozenset("HIS HID HIE HIP".split())
# Hidden files, backups and documentation in directories of templates.
_NO_TEMPLATE = re.compile(r"[.#].*|.*~|.*\.(bak|orig|old|swp|md|rst|html)|(readme|license).*", re.IGNORECASE)
RADII = {"openmm-obc": "amber99.txt", "pele": "pele.txt"}


@dataclass(frozen=True)
class PeleData:
    """Parts of PELE's Data and DataLocal directories to use; later ones have priority.

    name : name of the chosen force-field directory, "" if there is none
    templates, obc : directories of templates; OBC tables
    """

    name: str
    templates: tuple[Path, ...]
    obc: tuple[Path, ...]


@lru_cache(maxsize=1)
def embedded_templates() -> Library:
    """Return the templates of the built-in Amber99SB."""
    return Library(shipped("data") / EMBEDDED, "amber")


@lru_cache(maxsize=1)
def embedded_links() -> Links:
    """Return the links of the built-in Amber99SB."""
    return load_links(shipped("data") / EMBEDDED)


@lru_cache(maxsize=len(RADII))
def embedded_radii(radii: str) -> ObcTable:
    """Return a built-in OBC table, "openmm-obc" or "pele"."""
    if radii not in RADII:
        raise InputError(f"radii is {radii!r}; choose {' or '.join(map(repr, RADII))}")
    return read_obc(shipped("data") / "obc" / RADII[radii])


def load_templates(path: Path) -> dict[str, Template]:
    """Read the templates in a file or, recursively, in a directory, by name. Other files are ignored.

    Raises InputError if the path does not exist, FormatError if several templates have the same name.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; give an IMPACT template or a folder of them")
    templates: dict[str, Template] = {}
    for file in () if path.name in LINK_FILES else _template_files(path):
        template = read_template(file)
        if template.name in templates:
            raise FormatError(
                f"{file}: {templates[template.name].source} is a template of the same residue; "
                "give the folder of a single force field"
            )
        templates[template.name] = template
    default = templates["ALA"].kind if "ALA" in templates else None
    return {name: _settled(template, default) for name, template in templates.items()}


def load_links(path: Path) -> dict[LinkKey, Link]:
    """Read the links in a file or directory tree, by names of the bonded atoms. Later files have priority."""
    if path.is_file():
        return read_links(path) if path.name in LINK_FILES else {}
    files = sorted(file for name in LINK_FILES for file in path.rglob(name) if file.is_file())
    return {key: link for file in files for key, link in read_links(file).items()}


def is_complete(templates: Iterable[str]) -> bool:
    """Return whether templates form a complete protein force field, with the twenty amino acids."""
    names = set(templates)
    return names >= AMINO_ACIDS - {"HIS"} and not names.isdisjoint(_HISTIDINES)


def is_protein_folder(templates: Mapping[str, Template]) -> bool:
    """Return whether templates include alanine and come from a directory Protein."""
    return len(templates) > 1 and "ALA" in templates and Path(templates["ALA"].source).parent.name == "Protein"


def find_pele_data(roots: Sequence[Path], name: str | None) -> PeleData:
    """Choose a force field in PELE's directories.

    roots : Data and DataLocal directories, or directories that contain them. DataLocal has priority over Data, and
        later ones over earlier ones
    name : directory in Templates to use, required if there are several

    OpenFF directories contain only ligands and are always used.
    """
    folders = data_folders(roots)
    found = [folder for root in folders for folder in _subfolders(root / "Templates")]
    names = {folder.name for folder in found if not folder.name.upper().startswith("OPENFF")}
    chosen = {n for n in names if name is None or n.lower() == name.lower()}
    listed = " and ".join(sorted(names))
    if len({n.lower() for n in chosen}) > 1:
        raise ParameterError(
            f"{folders[0]}: the folder Templates contains {listed}; choose one of them as the force field"
        )
    if names and not chosen:
        raise ParameterError(f"{folders[0]}: the folder Templates contains {listed}, not {name}; choose one of these")
    return PeleData(
        name=min(chosen, default=""),
        templates=tuple(f for f in found if f.name in chosen or f.name.upper().startswith("OPENFF")),
        obc=tuple(table for root in folders for table in _obc_files(root / "OBC")),
    )


def kind_of_name(name: str) -> Kind | None:
    """Return the kind, Amber or OPLS, indicated by the name of a force field; None if unknown."""
    if re.match(r"AMBER\d", name, re.IGNORECASE):
        return "amber"
    return "opls" if re.match(r"OPLS|OPENFF", name, re.IGNORECASE) else None


def is_parameter_file(file: Path) -> bool:
    """Return whether a file would be read as a link file, a template or an OBC table."""
    text = _text(file)
    return file.name in LINK_FILES or is_template(text) or is_obc(text)


def _template_files(path: Path) -> list[Path]:
    """List a file, or the files below a directory that look like templates."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [
        file
        for file in files
        if not any(map(_NO_TEMPLATE.fullmatch, file.relative_to(path).parts)) and is_template(_text(file))
    ]


def _text(file: Path) -> str:
    """Read a text file; "" if it is not a text file."""
    try:
        return "".join(lines(file, "parameter"))
    except FormatError:
        return ""


def _settled(template: Template, default: Kind | None) -> Template:
    """Set the kind of a template of unknown kind, by the names of its parent directories."""
    folders = [kind for parent in Path(template.source).resolve().parents if (kind := kind_of_name(parent.name))]
    return template if template.kind else replace(template, kind=next(iter(folders), default))


def data_folders(roots: Sequence[Path]) -> list[Path]:
    """Return the directories Data and then DataLocal at or below the roots. Raises InputError for other roots."""
    folders: list[Path] = []
    for root in roots:
        if not root.exists():
            raise InputError(f"{root}: no such folder; give PELE's Data or DataLocal folder")
        inner = [root / name for name in ("Data", "DataLocal") if (root / name).is_dir()]
        if not inner and not ((root / "Templates").is_dir() or (root / "OBC").is_dir()):
            raise InputError(f"{root}: contains no folder Templates or OBC; give PELE's Data or DataLocal folder")
        folders += inner or [root]
    return sorted(folders, key=lambda folder: folder.name == "DataLocal")


def _subfolders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir()) if path.is_dir() else []


def _obc_files(path: Path) -> list[Path]:
    """List OBC tables, PELE's first, so that tables of ligands have priority. Subdirectories are ignored."""
    texts = sorted(path.glob("*.txt")) if path.is_dir() else []
    files = [file for file in texts if is_obc(_text(file))]
    return sorted(files, key=lambda file: not file.name.startswith("solventParams"))


K = TypeVar("K")
V = TypeVar("V")
Paths = Iterable[str | PathLike[str]]


class Collected(NamedTuple):
    """Fields of a ForceField that are determined by files."""

    name: str
    kind: Kind
    templates: Mapping[str, Template]
    radii: Mapping[Key, tuple[float, float]]
    radii_set: str
    origin: Origin
    links: Links


def collected(name: str | None, radii: str | None, templates: Paths, obc: Paths, pele_data: Paths) -> Collected:
    """Collect a force field from the user's files and the built-in one; arguments as in ForceField.load."""
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
    """Choose the set of radii, and its rows if the user's tables must be completed."""
    chosen = gb_set(radii or ("pele" if whole else "openmm-obc"), "radii")
    is_needed = chosen not in BONDI_SETS and (radii is not None or ("ALA", "CA") not in rows)
    return chosen, embedded_radii(chosen) if is_needed else {}


def _merged(collections: Iterable[Mapping[K, V]]) -> dict[K, V]:
    """Merge mappings. Later ones have priority."""
    return {key: value for collection in collections for key, value in collection.items()}


def _required(path: Path) -> dict[str, Template]:
    """Load templates given by the user. Raises InputError if there are none."""
    templates = load_templates(path)
    if not templates:
        raise InputError(f"{path}: contains no templates; give a folder of IMPACT templates")
    return templates


def _kind(name: str | None, pele: PeleData, given: Mapping[str, Template], whole: bool) -> Kind:
    """Return the kind of a force field: that of alanine if it is complete, otherwise that of the built-in one."""
    if whole:
        return given["ALA"].kind or "amber"
    if name is not None and not pele.templates and name.lower() != EMBEDDED:
        raise ParameterError(
            f"unknown force field '{name}'; {EMBEDDED} is built in, OpenMM provides {', '.join(names())}, and "
            "others come from the folders given with `templates` or `pele_data`"
        )
    return "amber"


def _label(pele: PeleData, given: Mapping[str, Template]) -> str:
    """Return the name of a complete force field of the user, from its directory."""
    if pele.name:
        return pele.name
    folder = Path(given["ALA"].source).resolve().parent
    return folder.parent.name if folder.name == "Protein" else folder.name
