"""The sources of templates and OBC tables: the shipped data, files and folders, and PELE's Data and DataLocal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ..atoms.radii import tidy_set
from ..chemistry import AMINO_ACIDS
from ..errors import FormatError, InputError, ParameterError
from ..paths import shipped
from ..textfiles import lines
from .library import Library
from .links import LINK_FILES, Link, LinkKey, Links, read_links
from .obc import ObcTable, is_obc, read_obc
from .template import Kind, Template
from .templates import is_template, read_template

EMBEDDED = "amber99sb"
_HISTIDINES = frozenset("HIS HID HIE HIP".split())
# Hidden files, backups of editors and texts that lie in folders of templates.
_NO_TEMPLATE = re.compile(r"[.#].*|.*~|.*\.(bak|orig|old|swp|md|rst|html)|(readme|license).*", re.IGNORECASE)
RADII = {"openmm-obc": "amber99.txt", "pele": "pele.txt"}


@dataclass(frozen=True)
class PeleData:
    """The parts of PELE's Data and DataLocal folders that are used; what comes later wins.

    name : force field folder that was chosen, "" where there is none
    templates, obc : folders of templates; OBC tables
    """

    name: str
    templates: tuple[Path, ...]
    obc: tuple[Path, ...]


@lru_cache(maxsize=1)
def embedded_templates() -> Library:
    """The shipped Amber99SB."""
    return Library(shipped("data") / EMBEDDED, "amber")


@lru_cache(maxsize=1)
def embedded_links() -> Links:
    """The terms across bonds between residues of the shipped Amber99SB."""
    return load_links(shipped("data") / EMBEDDED)


@lru_cache(maxsize=len(RADII))
def embedded_radii(radii: str) -> ObcTable:
    """A shipped OBC table, "openmm-obc" (or "amber") or "pele"."""
    radii = tidy_set(radii)
    if radii not in RADII:
        raise InputError(f"radii is {radii!r}; choose {' or '.join(map(repr, RADII))}")
    return read_obc(shipped("data") / "obc" / RADII[radii])


def load_templates(path: Path) -> dict[str, Template]:
    """The templates of a file, or of a folder and all folders in it, by name; files that are none are passed over.

    Raises InputError where there is no such path, FormatError for two templates of one name.
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
    """The links of a file, or of a folder and all folders in it, by the names of the bonded atoms; later files win."""
    if path.is_file():
        return read_links(path) if path.name in LINK_FILES else {}
    files = sorted(file for name in LINK_FILES for file in path.rglob(name) if file.is_file())
    return {key: link for file in files for key, link in read_links(file).items()}


def is_complete(templates: Iterable[str]) -> bool:
    """Whether templates of these names are a whole protein force field: they have the twenty amino acids."""
    names = set(templates)
    return names >= AMINO_ACIDS - {"HIS"} and not names.isdisjoint(_HISTIDINES)


def is_protein_folder(templates: Mapping[str, Template]) -> bool:
    """Whether the templates of one file or folder come, alanine among them, from a folder Protein."""
    return len(templates) > 1 and "ALA" in templates and Path(templates["ALA"].source).parent.name == "Protein"


def find_pele_data(roots: Sequence[Path], name: str | None) -> PeleData:
    """Choose a force field in PELE's folders.

    roots : Data and DataLocal folders, or folders that hold them; DataLocal wins over Data, else later over earlier
    name : which folder of Templates to take; needed if there are several

    OpenFF folders hold ligands only and are always taken.
    """
    folders = _data_folders(roots)
    found = [folder for root in folders for folder in _subfolders(root / "Templates")]
    names = {folder.name for folder in found if not folder.name.upper().startswith("OPENFF")}
    chosen = {n for n in names if name is None or n.lower() == name.lower()}
    listed = " and ".join(sorted(names))
    if len({n.lower() for n in chosen}) > 1:
        raise ParameterError(f"{folders[0]}: the folder Templates holds {listed}; choose one with --forcefield")
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
    """Whether a file that lies in a folder of parameters would be read as a template or an OBC table."""
    text = _text(file)
    return file.name in LINK_FILES or is_template(text) or is_obc(text)


def _template_files(path: Path) -> list[Path]:
    """The file itself, or the files below a folder that claim to be templates; texts and backups do not."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [
        file
        for file in files
        if not any(map(_NO_TEMPLATE.fullmatch, file.relative_to(path).parts)) and is_template(_text(file))
    ]


def _text(file: Path) -> str:
    """The text of a file that lies in a folder, "" where it is none."""
    try:
        return "".join(lines(file, "parameter"))
    except FormatError:
        return ""


def _settled(template: Template, default: Kind | None) -> Template:
    """A template that does not tell its kind takes that of the folder it lies in."""
    folders = [kind for parent in Path(template.source).resolve().parents if (kind := kind_of_name(parent.name))]
    return template if template.kind else replace(template, kind=next(iter(folders), default))


def _data_folders(roots: Sequence[Path]) -> list[Path]:
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
