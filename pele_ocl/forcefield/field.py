"""ForceField: assignment of parameters and OBC radii from residue templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..atoms import Atoms, DefaultRadii, Floats, Ints, Structure
from ..atoms.chemistry import tidy_element
from ..atoms.combining import Combining
from ..atoms.radii import BONDI_SETS, TINKER_SETS, element_rule, gb_set, radii_set
from ..common import arguments
from ..common.errors import InputError, ParameterError
from ..common.modules import renamed
from .bonded import AtomParameters, bonded_of
from .bonding import bonding_of
from .links import Links
from .matching import Match, match_residues, unmatched_residues
from .obc import Key, lookup
from .openmm.names import is_named
from .sources import Origin, collected, embedded_radii
from .templates import Kind, Template

if TYPE_CHECKING:
    from .openmm.xml import XmlFiles

_COMBINING: dict[Kind, Combining] = {"amber": "arithmetic", "opls": "geometric"}
_NAMED = 5  # maximum number of atoms in a note
_ONE_FOUR: dict[Kind, tuple[float, float]] = {"amber": (1 / 1.2, 1 / 2), "opls": (1 / 2, 1 / 2)}


class _Radii(NamedTuple):
    """GB radii (n,) A and scale factors (n,), None if the default set is incomplete; notes; DefaultRadii, if any."""

    radii: Floats | None
    scales: Floats | None
    notes: tuple[str, ...] = ()
    default: DefaultRadii | None = None


@dataclass(frozen=True, eq=False)
class ForceField:
    """A force field, which converts a Structure to Atoms.

    name : name for messages
    kind : "amber" (arithmetic sigma, 1-4 scale factors 1/1.2 and 1/2) or "opls" (geometric sigma, 1/2 and 1/2)
    templates : residue templates by name
    radii : OBC radius (A) and scale factor by (template, atom name)
    radii_set : name of the set of radii, or of the built-in table that completes the user's tables
    fallback : True to use radii by element and bonds for atoms missing in the table, with a note
    origin : files of the user, for notes
    links : terms across bonds between residues, by names of the bonded atoms
    allow_missing_terminals : True to allow residues at chain ends without terminal atoms, as in PELE's control file.
        They get the template of a residue within a chain, or that of a terminal residue without the missing atoms
    whole_segments : True to bond consecutive residues of a chain at any distance
    default_radii : True if radii are a default set, which a GB model may replace

    >>> field = pele_ocl.ForceField.load()  # Amber99SB
    >>> field.assign(pele_ocl.formats.read_structure("data/structures/trialanine.pdb"))
    Atoms(33 atoms, 3 residues, 32 bonds, net charge +0.000 e)
    """

    name: str
    kind: Kind
    templates: Mapping[str, Template]
    radii: Mapping[Key, tuple[float, float]]
    fallback: bool = False
    radii_set: str = ""
    origin: Origin = field(default_factory=Origin)
    links: Links = field(default_factory=dict)
    allow_missing_terminals: bool = True
    whole_segments: bool = False
    default_radii: bool = False

    def __repr__(self) -> str:
        own = f"{len(self.templates):,} templates, {len(self.radii):,} radii"
        return f"ForceField({self.name}, {self.kind}, {own}{', with fallback' if self.fallback else ''})"

    @classmethod
    def load(
        cls,
        name: str | Sequence[str] | None = None,
        radii: str | None = None,
        templates: Iterable[str | PathLike[str]] = (),
        obc: Iterable[str | PathLike[str]] = (),
        pele_data: Iterable[str | PathLike[str]] = (),
        guess_radii: bool = False,
        allow_missing_terminals: bool = True,
        allow_scripts: bool = False,
        *,
        fallback: bool | None = None,
    ) -> ForceField:
        """Load a force field: the built-in Amber99SB, PELE's, or OpenMM's.

        name : "amber99sb", or a directory in PELE's Templates ("OPLS2005", "AMBER99sb"), required if there are several.
            With the extra `openmm` also "amber14", "ff14SB", "charmm36" and others, or OpenMM XML files, separated by
            commas or in a list
        radii : built-in OBC radii: "openmm-obc" (OpenMM's amber99_obc) or "pele" (Tinker's, as in PELE). The default is
            "openmm-obc" with the built-in templates and "pele" with a complete force field of the user, unless the GB
            model requires another set (SolventModel.choose_radii). AMBER's sets "bondi", "mbondi", "mbondi2" and
            "mbondi3" replace all tables
        templates : IMPACT template files, or directories that are searched recursively
        obc : OBC tables as text or JSON
        pele_data : PELE's Data and DataLocal directories, or directories that contain them
        guess_radii : True to use radii by element and bonds for atoms missing in the tables, instead of raising an
            error
        allow_missing_terminals : as in ForceField
        fallback : former name of `guess_radii`
        allow_scripts : True to run Python scripts in OpenMM XML files; by default such files raise an error

        Later files have priority over earlier ones. A force field of the user is complete if it has the twenty amino
        acids or a directory Protein; the built-in templates are then not used. Otherwise, for example with only ligands
        in DataLocal, templates are merged with the built-in ones. Missing OBC rows come from the built-in radii if
        `radii` is given, or if no table contains alanine.

        Raises InputError, FormatError or ParameterError.

        >>> pele_ocl.ForceField.load(radii="mbondi3").assign(
        ...     pele_ocl.formats.read_structure("data/structures/trialanine.pdb")
        ... ).gb_radii_set
        'mbondi3'
        """
        if name is not None and not isinstance(name, str):  # a list, as in OpenMM's ForceField
            name = ",".join(arguments.texts("forcefield", name))
        if radii is not None:
            arguments.text("radii", radii)
        if fallback is not None:
            guess_radii = renamed("ForceField.load(fallback=...)", "guess_radii=", fallback)
        arguments.flag("guess_radii", guess_radii)
        arguments.flag("allow_missing_terminals", allow_missing_terminals)
        arguments.flag("allow_scripts", allow_scripts)
        if name is not None and is_named(name):
            return _openmm_force_field(name, radii, [*templates, *obc, *pele_data], allow_scripts)
        found = collected(name, radii, templates, obc, pele_data)
        return cls(
            found.name, found.kind, found.templates, found.radii, guess_radii, found.radii_set, found.origin,
            found.links, allow_missing_terminals, default_radii=radii is None and not found.origin.rows,
        )  # fmt: skip

    def _with_radii(self, name: str) -> ForceField:
        """Return the force field with another set of GB radii, which SolventModel keeps. User tables have priority.

        name : as in `load`. Raises InputError for unknown names.
        """
        chosen = gb_set(arguments.text("radii", name), "radii")
        rows = self.radii if chosen in BONDI_SETS else {**embedded_radii(chosen), **self.origin.rows}
        return replace(self, radii=rows, radii_set=chosen, default_radii=False)

    def _unmatched(self, structure: Structure) -> list[int]:
        """Return the indices of the residues without a template."""
        return unmatched_residues(structure, self.templates)

    def assign(self, structure: Structure) -> Atoms:
        """Assign parameters to all atoms of a structure.

        Raises ParameterError for residues without a template and atoms without radii. Raises FormatError for duplicate
        atom names in a residue.
        """
        atoms = self._assign_known(structure)
        if atoms.gb_radii is None and atoms.default_radii is not None and atoms.default_radii.lacking:
            raise ParameterError(atoms.default_radii.lacking)
        return atoms

    def _assign_known(self, structure: Structure) -> Atoms:
        """Assign parameters like `assign`, but without GB radii if the default set is incomplete.

        A GB model with its own set of radii can still be used; functions that need the default set raise an error.
        """
        arguments.instance("structure", structure, Structure, "a Structure")
        if len(structure.labels) == 0:
            raise InputError(f"{structure.source} has no atoms; give a structure with atoms")
        matches = match_residues(structure, self.templates, self.allow_missing_terminals)
        bonding = bonding_of(structure, matches, self.whole_segments)
        used = list({id(m.template): m.template for m in matches}.values())
        index = _index(matches, used)
        radii = self._solvent(structure, used, index, bonding.bonds)
        kind, kind_notes = self._kind_of(used)
        parameters = _parameters(used, index, kind)
        bonded, bonded_notes = bonded_of(structure, matches, bonding, self.links, parameters)
        return Atoms(
            positions=structure.positions,
            charges=parameters.charges,
            lj_sigma=parameters.lj_sigma,
            lj_epsilon=parameters.lj_epsilon,
            gb_radii=radii.radii,
            gb_scales=radii.scales,
            labels=structure.labels,
            bonds=bonding.bonds,
            combining=parameters.combining,
            one_four=parameters.one_four,
            bonded=bonded,
            types=parameters.types,
            gb_radii_set="" if radii.radii is None else self._radii_name(used),
            default_radii=radii.default,
            forcefield=self.name,
            sgb=_sgb_of(used, index),
            notes=structure.notes
            + bonding.notes
            + radii.notes
            + kind_notes
            + bonded_notes
            + self.origin.notes(used, self.kind, self.radii),
        )

    def _solvent(self, structure: Structure, used: Sequence[Template], index: Ints, bonds: Ints) -> _Radii:
        """Choose the GB radii and scale factors of all atoms."""
        if self.radii_set in BONDI_SETS:
            return _Radii(*radii_set(self.radii_set, structure.labels, bonds))
        if not self.default_radii:
            return _Radii(*self._looked_up(self.radii, structure, used, index, bonds))
        tables, notes = dict[str, tuple[Floats, Floats] | str](), tuple[str, ...]()
        for name in TINKER_SETS:
            rows = self.radii if name == self.radii_set else embedded_radii(name)
            try:
                radii, scales, own = self._looked_up(rows, structure, used, index, bonds)
                tables[name] = radii, scales
            except ParameterError as error:
                tables[name], own = str(error), ()
            notes = own if name == self.radii_set else notes
        known = (*notes, *self.origin.about_radii)
        default = DefaultRadii(self.radii_set, structure.labels, bonds, tables, notes=known)
        if default.lacking:
            return _Radii(None, None, (), default)
        return _Radii(*default.of_set(default.name), notes, default)

    def _looked_up(
        self, table: Mapping[Key, tuple[float, float]], structure: Structure, used: Sequence[Template], index: Ints,
        bonds: Ints,
    ) -> tuple[Floats, Floats, tuple[str, ...]]:  # fmt: skip
        """Look up radii and scale factors in a table. Also returns notes.

        Raises ParameterError for atoms missing in the table, unless `fallback` is set.
        """
        none = (np.nan, np.nan)
        rows = [lookup(table, t.name, atom) or none for t in used for atom in t.names]
        radii, scales = np.array(rows)[index].T
        missing = np.flatnonzero(np.isnan(radii))
        if not len(missing):
            return radii, scales, ()
        keys = np.array([f"{t.name}_{atom}" for t in used for atom in t.names])[index]
        if not self.fallback:
            others = f" ({len(missing)} atoms in all)" if len(missing) > 1 else ""
            raise ParameterError(
                f"{structure.where(int(missing[0]))}: the OBC tables have no row {keys[missing[0]]}{others}; "
                "add a row with `obc` or use `guess_radii`"
            )
        guessed = np.array([element for t in used for element in t.elements])[index]
        stated = np.array([tidy_element(element) for element in structure.labels.elements])
        rule = element_rule(np.where(np.isin(stated, ("", "X")), guessed, stated), bonds)
        radii[missing], scales[missing] = rule[0][missing], rule[1][missing]
        names = list(dict.fromkeys(keys[missing].tolist()))
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        named = ", ".join(names[:_NAMED]) + more
        return radii, scales, (f"OBC radius and scale of {len(missing):,} atoms are those of their elements: {named}",)

    def _radii_name(self, used: Sequence[Template]) -> str:
        """Return the name of the set of radii: "file" for the user's tables."""
        if self.radii_set in BONDI_SETS:
            return self.radii_set
        own = {lookup(self.origin.rows, t.name, atom) is not None for t in used for atom in t.names}
        return {frozenset({True}): "file", frozenset({False}): self.radii_set}.get(
            frozenset(own), f"file, {self.radii_set}"
        )

    def _kind_of(self, used: Sequence[Template]) -> tuple[Kind, tuple[str, ...]]:
        """Return the kind of the templates if they agree, otherwise that of the force field, with a note."""
        odd = sorted(t.name for t in used if t.kind != self.kind)
        if len(odd) in (0, len(used)):
            return used[0].kind or self.kind, ()
        other = "OPLS" if self.kind == "amber" else "Amber"
        return self.kind, (
            f"the templates {', '.join(odd)} are of the {other} kind, the others are not; Lennard-Jones parameters "
            f"of all pairs are combined as in {self.name}",
        )


@dataclass(frozen=True, eq=False)
class XmlForceField(ForceField):
    """A force field from OpenMM XML files."""

    xml: XmlFiles = field(kw_only=True)

    def __repr__(self) -> str:
        return f"ForceField({self.name}: {', '.join(self.xml.files)})"

    def _with_radii(self, name: str) -> XmlForceField:
        """Return the force field with another set of GB radii, which SolventModel keeps."""
        chosen = gb_set(arguments.text("radii", name), "radii")
        return replace(self, xml=replace(self.xml, set_of_radii=chosen))

    def _unmatched(self, structure: Structure) -> list[int]:
        """Return the indices of the residues without a template."""
        return self.xml.unmatched(structure)

    def _assign_known(self, structure: Structure) -> Atoms:
        """Assign parameters like `assign`."""
        return self.assign(structure)

    def assign(self, structure: Structure) -> Atoms:
        """Assign parameters to all atoms of a structure, which must have all hydrogens.

        Residues are matched by elements and bonds, which are found by distance. A note lists residues that match a
        template with another name. Raises ParameterError for residues without a template.
        """
        return self.xml.assign(structure)


def _openmm_force_field(
    name: str, radii: str | None, files: Sequence[str | PathLike[str]], allow_scripts: bool
) -> ForceField:
    from .openmm.xml import load  # only needed for XML files

    if files:
        raise InputError(
            f"{files[0]}: templates and OBC tables cannot be combined with the force field {name}; give an XML file "
            f"of OpenMM: {name},ligand.xml"
        )
    return XmlForceField(name, "amber", {}, {}, xml=load(name, radii, allow_scripts))


def _parameters(used: Sequence[Template], index: Ints, kind: Kind) -> AtomParameters:
    """Collect the parameters of the atoms. index : (n,) indices into the concatenated atoms of the used templates"""
    return AtomParameters(
        charges=np.concatenate([t.charges for t in used])[index],
        lj_sigma=np.concatenate([t.lj_sigma for t in used])[index],
        lj_epsilon=np.concatenate([t.lj_epsilon for t in used])[index],
        types=np.array([type_ for t in used for type_ in t.types])[index],
        elements=np.array([element for t in used for element in t.elements])[index],
        by_index=np.repeat([t.impropers_by_index for t in used], [len(t) for t in used])[index],
        combining=_COMBINING[kind],
        one_four=_ONE_FOUR[kind],
    )


def _sgb_of(used: Sequence[Template], index: Ints) -> Floats | None:
    """Collect Atoms.sgb; None if no template has any. index : as in `_parameters`"""
    if all(t.sgb is None for t in used):
        return None
    return np.concatenate([np.full((len(t), 4), np.nan) if t.sgb is None else t.sgb for t in used])[index]


def _index(matches: Sequence[Match], used: Sequence[Template]) -> Ints:
    """Return the index of each atom in the concatenated atoms of the used templates, (n,)."""
    sizes = [len(t) for t in used]
    offset = dict(zip(map(id, used), np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
    return np.concatenate([m.order + offset[id(m.template)] for m in matches])
