"""Sources of a force field, collected into one: the built-in Amber99SB, files and folders, PELE's Data folders."""

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
    """Templates by name. A structure needs a fifth of a force field's; the others are not read.

    folder : holds templates and the files of links, and nothing else, in folders
    kind : of templates that do not tell it
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
    """Templates of several mappings; the first that has a name gives its template."""

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
    """Files that a user gave, as far as notes tell of them.

    tables : OBC tables by the file that a user named
    rows : rows of all tables of the user, PELE's folders included
    completed_with : built-in radii that complete a user's force field unasked, "" if none
    undecided : templates whose figures and folders do not tell their kind
    without_protein : name of a force field of PELE's folders that has ligands alone there, "" if none
    given : names of the user's templates
    """

    tables: Mapping[str, ObcTable] = field(default_factory=dict)
    rows: ObcTable = field(default_factory=dict)
    completed_with: str = ""
    undecided: frozenset[str] = frozenset()
    without_protein: str = ""
    given: frozenset[str] = frozenset()

    def notes(self, used: Sequence[Template], kind: Kind, radii: Mapping[Key, tuple[float, float]]) -> tuple[str, ...]:
        """Sentences about the parameters of the templates that a structure needs."""
        return tuple(self._notes(used, kind, radii))

    @property
    def about_radii(self) -> tuple[str, ...]:
        """Say that built-in radii complete a user's force field unasked; nothing if they do not."""
        if not self.completed_with:
            return ()
        return (
            "the force field came without a whole OBC table, so built-in radii "
            f"({self.completed_with}) were taken; give its table with `obc`, or choose a set of radii",
        )

    def _notes(self, used: Sequence[Template], kind: Kind, radii: Mapping[Key, tuple[float, float]]) -> Iterator[str]:
        keys = [(template.name, atom) for template in used for atom in template.names]
        for file, table in self.tables.items():
            if not any(lookup(table, *key) for key in keys):
                yield f"no row of {file} was used: none names an atom of the structure"
        if self.completed_with and any(lookup(self.rows, *key) is None for key in keys if lookup(radii, *key)):
            yield from self.about_radii
        if self.without_protein and not all(template.name in self.given for template in used):
            yield Note(
                f"the folder of {self.without_protein} has no proteins, so templates of the built-in Amber99SB were "
                "taken for what it lacks; give PELE's Data folder, too, with `pele_data`",
                code="borrowed_templates",
            )
        undecided = sorted(template.name for template in used if template.name in self.undecided)
        if undecided:
            length = "R*" if kind == "amber" else "sigma"
            named = ", ".join(undecided)
            yield Note(
                f"nothing tells whether the lengths of {named} are R* or sigma; they were taken for {length}",
                code="lengths",
            )


EMBEDDED = "amber99sb"
_HISTIDINES = frozenset("HIS HID HIE HIP".split())
# Hidden files, backups of editors and texts that lie in folders of templates.
_NO_TEMPLATE = re.compile(r"[.#].*|.*~|.*\.(bak|orig|old|swp|md|rst|html)|(readme|license).*", re.IGNORECASE)
RADII = {"openmm-obc": "amber99.txt", "pele": "pele.txt"}


@dataclass(frozen=True)
class PeleData:
    """Parts of PELE's Data and DataLocal folders that are used; later ones win.

    name : force field folder that was chosen, "" where there is none
    templates, obc : folders of templates; OBC tables
    """

    name: str
    templates: tuple[Path, ...]
    obc: tuple[Path, ...]


@lru_cache(maxsize=1)
def embedded_templates() -> Library:
    """Read the shipped Amber99SB."""
    return Library(shipped("data") / EMBEDDED, "amber")


@lru_cache(maxsize=1)
def embedded_links() -> Links:
    """Read the terms across bonds between residues of the shipped Amber99SB."""
    return load_links(shipped("data") / EMBEDDED)


@lru_cache(maxsize=len(RADII))
def embedded_radii(radii: str) -> ObcTable:
    """A shipped OBC table, "openmm-obc" or "pele"."""
    if radii not in RADII:
        raise InputError(f"radii is {radii!r}; choose {' or '.join(map(repr, RADII))}")
    return read_obc(shipped("data") / "obc" / RADII[radii])


def load_templates(path: Path) -> dict[str, Template]:
    """Read the templates of a file or of a folder with all below it, by name; pass over other files.

    Raises InputError if there is no such path, FormatError for two templates of one name.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder; give an IMPACT template or a folder of them")
    templates: dict[str, Template] = {}
    for file in () if path.name in LINK_FILES else _template_files(path):
        template = read_template(file)
        if template.name in templates:
            raise FormatError(
                f"{file}: {templates[template.name].source} is a template of the same residue; "
                "give the folder of one force field only"
            )
        templates[template.name] = template
    default = templates["ALA"].kind if "ALA" in templates else None
    return {name: _settled(template, default) for name, template in templates.items()}


def load_links(path: Path) -> dict[LinkKey, Link]:
    """Read the links of a file or of a folder with all below it, by bonded atoms' names; later files win."""
    if path.is_file():
        return read_links(path) if path.name in LINK_FILES else {}
    files = sorted(file for name in LINK_FILES for file in path.rglob(name) if file.is_file())
    return {key: link for file in files for key, link in read_links(file).items()}


def is_complete(templates: Iterable[str]) -> bool:
    """Return whether templates of these names are a whole protein force field: they have the twenty amino acids."""
    names = set(templates)
    return names >= AMINO_ACIDS - {"HIS"} and not names.isdisjoint(_HISTIDINES)


def is_protein_folder(templates: Mapping[str, Template]) -> bool:
    """Return whether the templates of one file or folder, alanine among them, come from a folder Protein."""
    return len(templates) > 1 and "ALA" in templates and Path(templates["ALA"].source).parent.name == "Protein"


def find_pele_data(roots: Sequence[Path], name: str | None) -> PeleData:
    """Choose a force field in PELE's folders.

    roots : Data and DataLocal folders, or folders that hold them; DataLocal wins over Data, else later over earlier
    name : which folder of Templates to take; needed if there are several

    OpenFF folders hold ligands only and are always taken.
    """
    folders = data_folders(roots)
    found = [folder for root in folders for folder in _subfolders(root / "Templates")]
    names = {folder.name for folder in found if not folder.name.upper().startswith("OPENFF")}
    chosen = {n for n in names if name is None or n.lower() == name.lower()}
    listed = " and ".join(sorted(names))
    if len({n.lower() for n in chosen}) > 1:
        raise ParameterError(f"{folders[0]}: the folder Templates holds {listed}; name one of them as the force field")
    if names and not chosen:
        raise ParameterError(f"{folders[0]}: the folder Templates holds {listed}, not {name}; choose what is there")
    return PeleData(
        name=min(chosen, default=""),
        templates=tuple(f for f in found if f.name in chosen or f.name.upper().startswith("OPENFF")),
        obc=tuple(table for root in folders for table in _obc_files(root / "OBC")),
    )


def kind_of_name(name: str) -> Kind | None:
    """Amber or OPLS by the name of a force field, None where it says neither."""
    if re.match(r"AMBER\d", name, re.IGNORECASE):
        return "amber"
    return "opls" if re.match(r"OPLS|OPENFF", name, re.IGNORECASE) else None


def is_parameter_file(file: Path) -> bool:
    """Return whether a file in a folder of parameters would be read as a template or an OBC table."""
    text = _text(file)
    return file.name in LINK_FILES or is_template(text) or is_obc(text)


def _template_files(path: Path) -> list[Path]:
    """List the file itself, or the files below a folder that claim to be templates; texts and backups do not."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [
        file
        for file in files
        if not any(map(_NO_TEMPLATE.fullmatch, file.relative_to(path).parts)) and is_template(_text(file))
    ]


def _text(file: Path) -> str:
    """Read the text of a file that lies in a folder, "" if it is none."""
    try:
        return "".join(lines(file, "parameter"))
    except FormatError:
        return ""


def _settled(template: Template, default: Kind | None) -> Template:
    """Return a template that does not tell its kind the kind of the folder it lies in."""
    folders = [kind for parent in Path(template.source).resolve().parents if (kind := kind_of_name(parent.name))]
    return template if template.kind else replace(template, kind=next(iter(folders), default))


def data_folders(roots: Sequence[Path]) -> list[Path]:
    """Folders Data, then DataLocal, of roots that are such folders or hold them. Raises InputError for others."""
    folders: list[Path] = []
    for root in roots:
        if not root.exists():
            raise InputError(f"{root}: no such folder; give PELE's Data or DataLocal folder")
        inner = [root / name for name in ("Data", "DataLocal") if (root / name).is_dir()]
        if not inner and not ((root / "Templates").is_dir() or (root / "OBC").is_dir()):
            raise InputError(f"{root}: there is no folder Templates or OBC in it; give PELE's Data or DataLocal folder")
        folders += inner or [root]
    return sorted(folders, key=lambda folder: folder.name == "DataLocal")


def _subfolders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir()) if path.is_dir() else []


def _obc_files(path: Path) -> list[Path]:
    """PELE's table first, so that tables of single ligands win; folders below hold tables of other origin."""
    texts = sorted(path.glob("*.txt")) if path.is_dir() else []
    files = [file for file in texts if is_obc(_text(file))]
    return sorted(files, key=lambda file: not file.name.startswith("solventParams"))


K = TypeVar("K")
V = TypeVar("V")
Paths = Iterable[str | PathLike[str]]


class Collected(NamedTuple):
    """Fields of a ForceField that follow from files, by their names there."""

    name: str
    kind: Kind
    templates: Mapping[str, Template]
    radii: Mapping[Key, tuple[float, float]]
    radii_set: str
    origin: Origin
    links: Links


def collected(name: str | None, radii: str | None, templates: Paths, obc: Paths, pele_data: Paths) -> Collected:
    """Collect the force field of a user's files, completed by the built-in one; parameters of ForceField.load."""
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
    """Choose the set of radii, named or by default, and its rows if they complete a user's."""
    chosen = gb_set(radii or ("pele" if whole else "openmm-obc"), "radii")
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
    """Find the kind of a force field: its alanine's if it is a whole one, else the built-in one's."""
    if whole:
        return given["ALA"].kind or "amber"
    if name is not None and not pele.templates and name.lower() != EMBEDDED:
        raise ParameterError(
            f"there is no force field '{name}' in what was given; {EMBEDDED} is built in, "
            f"OpenMM brings {', '.join(names())}, others come from the folders given with `templates` or "
            "`pele_data`"
        )
    return "amber"


def _label(pele: PeleData, given: Mapping[str, Template]) -> str:
    """Name a whole force field of the user by its folder."""
    if pele.name:
        return pele.name
    folder = Path(given["ALA"].source).resolve().parent
    return folder.parent.name if folder.name == "Protein" else folder.name
