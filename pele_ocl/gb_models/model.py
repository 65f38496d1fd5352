"""A Generalized Born model: what it has of atoms, and by which kernels it is computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Floats
from .elements import Elements, is_nucleic, symbols_of
from .necks import Necks


@dataclass(frozen=True, eq=False)
class Spheres:
    """Radii of n atoms and what else a GB model has of each.

    radii, rho : (n,) A, intrinsic and offset radii
    scaled : (n,) A, radii with which the atoms descreen others; below 0 where a model lets them screen
    constants : (n, 4) alpha, beta, gamma and the offset (A) of each atom's radius function; None where all have one
    necks : of pairs; None where the model has none
    """

    radii: Floats
    rho: Floats
    scaled: Floats
    constants: Floats | None = None
    necks: Necks | None = None


@dataclass(frozen=True)
class GBModel:
    """A Generalized Born model: over HCT integrals, or with an integral of its own.

    Other rooms ask its properties below, and never which model it is. Which sums give its Born radii is `of_surface`,
    for the passes of `pele_ocl/energy` and the definition in `pele_ocl/reference` alone.

    name : by which users choose it
    source : the paper that defines it
    function : the macro of cl/physics/gb_radius.clh that selects its radius function
    offset : A, subtracted from each radius; of a model's own, a user may set another
    alpha, beta, gamma : coefficients of the radius function, likewise; 0 where it has none, None where each element
        has its own
    neck_scale : of the neck integrals that pairs add; 0 for none
    elements : parameters by element, which replace the atoms' own scales; None if the atoms' scales hold
    nucleic : the same of nucleic acids; None where they have no others
    is_unbounded : if radii have no upper bound, so that errors of the integral grow with them
    vacuum : whether there is no solvent, and so neither Born radii nor energies of it
    of_surface : if Born radii are integrals over the surface of the spheres of Atoms.sgb
    own_dielectrics : if each atom has a dielectric constant inside
    igb : the number by which AMBER's programs know it, None where they do not
    radii_set : the set of GB radii that it was made with; None for no set of its own. It is the default only with
        constants of AMBER's programs (SolventModel.like), or if the model has necks: SolventModel.choose_radii
    """

    name: str
    source: str
    function: str
    offset: float = 0.09
    alpha: float | None = 0.0
    beta: float | None = 0.0
    gamma: float | None = 0.0
    neck_scale: float = 0.0
    elements: Elements | None = None
    nucleic: Elements | None = None
    is_unbounded: bool = False
    vacuum: bool = False
    of_surface: bool = False
    own_dielectrics: bool = False
    igb: int | None = None
    radii_set: str | None = None

    @property
    def is_pairwise(self) -> bool:
        """True if all sums are over pairs of atoms: parts can be left out, put into trees and shared out."""
        return not self.of_surface

    @property
    def needs_its_radii(self) -> bool:
        """True if it means little with radii other than `radii_set`, as models with necks do."""
        return self.neck_scale > 0

    @property
    def holds_radii(self) -> bool:
        """True if gradients hold Born radii and surface, because they have no slope here."""
        return self.of_surface

    @property
    def nonpolar(self) -> str | None:
        """Nonpolar term that it has of its own, a key of SURFACES; None if users choose one."""
        return "sgb" if self.of_surface else None

    def name_of_radii(self, atoms: Atoms) -> str:
        """Name the set of the radii that it takes of atoms: the GB radii's, or "sgb" for Atoms.sgb."""
        return "sgb" if self.of_surface else atoms.gb_radii_set

    @property
    def by_atom(self) -> bool:
        """True if the coefficients of the radius function depend on the element."""
        return self.alpha is None

    @property
    def has_negative(self) -> bool:
        """True if elements have scales below 0: their spheres reduce the integral."""
        return self.elements is not None and self.elements.has_negative

    @property
    def definitions(self) -> dict[str, int]:
        """Build definitions of kernels that compute Born radii from Born integrals; cl/physics/gb_radius.clh."""
        return {self.function: 1} | ({"BY_ATOM": 1} if self.by_atom else {})

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters that atoms must have."""
        if self.vacuum:
            return ()
        if self.of_surface:
            return ("sgb",)
        return ("gb_radii",) if self.elements else ("gb_radii", "gb_scales")

    def scales(self, atoms: Atoms) -> Floats:
        """Return the scale of each atom's radius in the HCT integral, (n,)."""
        if self.elements is None:
            assert atoms.gb_scales is not None
            return atoms.gb_scales
        symbols = symbols_of(atoms, self.name)
        scales = self.elements.scales_of(symbols)
        return np.where(is_nucleic(atoms), self.nucleic.scales_of(symbols), scales) if self.nucleic else scales

    def coefficients(self, atoms: Atoms) -> Floats | None:
        """alpha, beta and gamma of each atom, (n, 3); None where all have the same."""
        if not self.by_atom or self.elements is None:
            return None
        symbols = symbols_of(atoms, self.name)
        values = self.elements.coefficients_of(symbols)
        if self.nucleic:
            values = np.where(is_nucleic(atoms)[:, None], self.nucleic.coefficients_of(symbols), values)
        return values

    def spheres(self, atoms: Atoms, offset: float, nearest_necks: bool = False) -> Spheres:
        """Make the spheres of a molecule's atoms. offset : A; nearest_necks : of Necks.of

        Raises InputError for atoms that lack what the model needs, ParameterError for radii that have no necks.
        """
        n = len(atoms)
        if self.vacuum:
            radii = np.ones(n) if atoms.gb_radii is None else np.maximum(atoms.gb_radii, 1.0)
            return Spheres(radii, radii, np.zeros(n))
        if self.of_surface:
            from .surface import sgb_figures

            return Spheres(sgb_figures(atoms, self.name)[:, 0], np.ones(n), np.zeros(n))
        assert atoms.gb_radii is not None
        rho = atoms.gb_radii - offset
        coefficients = self.coefficients(atoms)
        return Spheres(
            atoms.gb_radii,
            rho,
            self.scales(atoms) * rho,
            None if coefficients is None else np.column_stack([coefficients, np.full(n, offset)]),
            Necks.of(atoms, self.neck_scale, self.name, nearest_necks, self.radii_set) if self.neck_scale else None,
        )
