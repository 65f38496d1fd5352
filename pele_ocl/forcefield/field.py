"""ForceField: templates and OBC radii, and the parameters they give the atoms of a structure."""

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
_NAMED = 5  # atoms in a note
_ONE_FOUR: dict[Kind, tuple[float, float]] = {"amber": (1 / 1.2, 1 / 2), "opls": (1 / 2, 1 / 2)}


class _Radii(NamedTuple):
    """GB radii (n,) A and scales (n,), None where the default set lacks atoms; notes; DefaultRadii, if nobody chose."""

    radii: Floats | None
    scales: Floats | None
    notes: tuple[str, ...] = ()
    default: DefaultRadii | None = None


@dataclass(frozen=True, eq=False)
class ForceField:
    """Force field: everything needed to turn a Structure into Atoms.

    name : for messages
    kind : "amber" (arithmetic sigma, 1-4 scales 1/1.2 and 1/2) or "opls" (geometric sigma, 1/2 and 1/2)
    templates : residue templates by name
    radii : OBC radius (A) and scale by (template, atom name)
    radii_set : name of the built-in table that completes a user's, or of the set of all radii
    fallback : use radius and scale by element and bonds for atoms without a row, with a note
    origin : note about a user's files
    links : terms across bonds between residues, by the names of the bonded atoms
    allow_missing_terminals : as in PELE's control file. A residue at the end of a chain may lack the atoms of a
        terminal one. It then gets the template of one within a chain, or else that of the end, minus the missing atoms
    whole_segments : bond consecutive residues of a chain at any distance
    default_radii : whether radii are a default set, which a GB model may replace

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
        """Load a force field from the built-in Amber99SB and a user's files; later files have priority over earlier
        ones.

        name : "amber99sb" or a folder of PELE's Templates ("OPLS2005", "AMBER99sb"); needed if there are several. With
            the extra `openmm` also "amber14", "ff14SB", "charmm36", ..., or OpenMM's XML files, with commas between
            them or in a list
        radii : built-in OBC radii, "openmm-obc" (of OpenMM's amber99_obc; "amber" is another name) or "pele" (Tinker's,
            as PELE has them). By default the former with the built-in templates and the latter with a complete force
            field of the user, unless the GB model requires others (SolventModel.choose_radii). A set of AMBER's,
            "bondi", "mbondi", "mbondi2" or "mbondi3", replaces all tables
        templates : IMPACT template files, or folders that are searched recursively
        obc : OBC tables, text or JSON
        pele_data : PELE's Data and DataLocal folders, or folders that hold them
        guess_radii : radii by element and bonds for atoms without a row, instead of an error
        allow_missing_terminals : of the ForceField
        fallback : former name of `guess_radii`
        allow_scripts : whether Python scripts in OpenMM's XML files are run; otherwise files with scripts are refused

        The twenty amino acids or a folder Protein make a complete force field, and the built-in templates are not used.
        Other templates, such as those of a DataLocal with only ligands, are merged with the built-in ones. Missing rows
        come from the built-in radii if `radii` names them, or if no table has alanine.

        Raises InputError, FormatError or ParameterError.

        >>> pele_ocl.ForceField.load(radii="mbondi3").assign(
        ...     pele_ocl.formats.read_structure("data/structures/trialanine.pdb")
        ... ).gb_radii_set
        'mbondi3'
        """
        if name is not None and not isinstance(name, str):  # a list, as OpenMM's ForceField takes
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
        """Make the same force field with the GB radii of a set, for any solvent; rows of a user's tables win.

        name : as in `load`. Raises InputError for another name.
        """
        chosen = gb_set(arguments.text("radii", name), "radii")
        rows = self.radii if chosen in BONDI_SETS else {**embedded_radii(chosen), **self.origin.rows}
        return replace(self, radii=rows, radii_set=chosen, default_radii=False)

    def _unmatched(self, structure: Structure) -> list[int]:
        """List the places of the residues, from 0, that have no template."""
        return unmatched_residues(structure, self.templates)

    def assign(self, structure: Structure) -> Atoms:
        """Assign parameters to every atom of a structure.

        Raises ParameterError for residues without a template and atoms without a row. Raises FormatError for repeated
        atom names in a residue.
        """
        atoms = self._assign_known(structure)
        if atoms.gb_radii is None and atoms.default_radii is not None and atoms.default_radii.lacking:
            raise ParameterError(atoms.default_radii.lacking)
        return atoms

    def _assign_known(self, structure: Structure) -> Atoms:
        """Assign as `assign` does, but leave GB radii out where the default set lacks atoms.

        A GB model that was made with another set gives its own; what needs radii of the default set raises.
        """
        arguments.instance("structure", structure, Structure, "a Structure")
        if len(structure.labels) == 0:
            raise InputError(f"{structure.source} has no atoms; give a structure that has some")
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
        """Choose radii and scales of all atoms."""
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
        """Look radii, scales and notes up in a table.

        Raises ParameterError for atoms without a row, unless there is a fallback.
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
        return radii, scales, (f"OBC radius and scale of {len(missing):,} atoms follow from their elements: {named}",)

    def _radii_name(self, used: Sequence[Template]) -> str:
        """Name the set of the radii: "file" for rows of a user's tables."""
        if self.radii_set in BONDI_SETS:
            return self.radii_set
        own = {lookup(self.origin.rows, t.name, atom) is not None for t in used for atom in t.names}
        return {frozenset({True}): "file", frozenset({False}): self.radii_set}.get(
            frozenset(own), f"file, {self.radii_set}"
        )

    def _kind_of(self, used: Sequence[Template]) -> tuple[Kind, tuple[str, ...]]:
        """Find the kind whose rules hold: the templates' if they agree, else the force field's."""
        odd = sorted(t.name for t in used if t.kind != self.kind)
        if len(odd) in (0, len(used)):
            return used[0].kind or self.kind, ()
        other = "OPLS" if self.kind == "amber" else "Amber"
        return self.kind, (
            f"the templates {', '.join(odd)} are of {other} kind, the others are not: Lennard-Jones parameters of all "
            f"pairs are combined as in {self.name}",
        )


@dataclass(frozen=True, eq=False)
class XmlForceField(ForceField):
    """A force field of OpenMM's XML files, with bonded terms of its own."""

    xml: XmlFiles = field(kw_only=True)

    def __repr__(self) -> str:
        return f"ForceField({self.name}: {', '.join(self.xml.files)})"

    def _with_radii(self, name: str) -> XmlForceField:
        """Make the same force field with the GB radii of a set, for any solvent."""
        chosen = gb_set(arguments.text("radii", name), "radii")
        return replace(self, xml=replace(self.xml, set_of_radii=chosen))

    def _unmatched(self, structure: Structure) -> list[int]:
        """List the places of the residues, from 0, that have no template."""
        return self.xml.unmatched(structure)

    def _assign_known(self, structure: Structure) -> Atoms:
        """Assign as `assign` does."""
        return self.assign(structure)

    def assign(self, structure: Structure) -> Atoms:
        """Parameters for every atom of a structure, which needs all its hydrogens.

        Residues are matched by their elements and bonds, which follow from distances; a note names each that has the
        template of another name. Raises ParameterError for residues without a template.
        """
        return self.xml.assign(structure)


def _openmm_force_field(
    name: str, radii: str | None, files: Sequence[str | PathLike[str]], allow_scripts: bool
) -> ForceField:
    from .openmm.xml import load  # XML files alone need it

    if files:
        raise InputError(
            f"{files[0]}: templates and OBC tables do not go with the force field {name}; give an XML file of OpenMM: "
            f"{name},ligand.xml"
        )
    return XmlForceField(name, "amber", {}, {}, xml=load(name, radii, allow_scripts))


def _parameters(used: Sequence[Template], index: Ints, kind: Kind) -> AtomParameters:
    """Collect the parameters of the atoms of all used templates, one after another, at these indices (n,)."""
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
    """Figures of Atoms.sgb of the atoms of all used templates at these indices (n,); None where no template has any."""
    if all(t.sgb is None for t in used):
        return None
    return np.concatenate([np.full((len(t), 4), np.nan) if t.sgb is None else t.sgb for t in used])[index]


def _index(matches: Sequence[Match], used: Sequence[Template]) -> Ints:
    """(n,) for each atom of the structure its index in the atoms of all used templates, one after another."""
    sizes = [len(t) for t in used]
    offset = dict(zip(map(id, used), np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
    return np.concatenate([m.order + offset[id(m.template)] for m in matches])
