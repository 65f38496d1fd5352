"""A Generalized Born model: its parameters and the macros of its kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..atoms import Atoms, Floats
from .elements import Elements, is_nucleic, symbols_of
from .necks import Necks


@dataclass(frozen=True, eq=False)
class Spheres:
    """Radii of n atoms and their other parameters in a GB model.

    radii, rho : (n,) A, intrinsic and offset radii
    scaled : (n,) A, scaled offset radii in the HCT integral; negative for elements with a negative scale factor
    constants : (n, 4) alpha, beta, gamma and offset (A) of each atom's radius function; None if all atoms share them
    necks : neck parameters of pairs of atoms; None if the model has none
    """

    radii: Floats
    rho: Floats
    scaled: Floats
    constants: Floats | None = None
    necks: Necks | None = None


@dataclass(frozen=True)
class GBModel:
    """A Generalized Born model, based on HCT integrals or on an integral over the molecular surface.

    Other packages use the properties below and never test the model's name. `of_surface` selects how Born radii are
    computed; only `pele_ocl/energy` and `pele_ocl/reference` use it.

    name : name of the model in options and arguments
    source : reference of the paper that defines it
    function : macro of cl/physics/gb_radius.clh that selects the radius function
    offset : A, default of the offset subtracted from each radius
    alpha, beta, gamma : default coefficients of the radius function; 0 if it has none, None if they depend on the
        element
    neck_scale : scale factor of the neck correction; 0 for none
    elements : parameters by element, used in place of Atoms.gb_scales; None to use Atoms.gb_scales
    nucleic : parameters by element for nucleic acids; None if they have the same ones
    is_unbounded : True if Born radii have no upper bound, so that errors of the integral grow with the radius
    vacuum : True for the model without solvent, which has no Born radii and no solvation energy
    of_surface : True if Born radii are integrals over the surface of the spheres in Atoms.sgb
    own_dielectrics : True if each atom has its own internal dielectric constant
    igb : AMBER's number of the model; None if AMBER does not have it
    radii_set : set of GB radii that the model was parametrized with; None for no particular set. It is the default only
        for models with a neck correction and with the constants of AMBER's programs (SolventModel.like); see
        SolventModel.choose_radii
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
        """True if all sums run over pairs of atoms (cutoffs and tree approximations are possible)."""
        return not self.of_surface

    @property
    def needs_its_radii(self) -> bool:
        """True if the model is only meaningful with the radii of `radii_set`, as models with a neck correction are."""
        return self.neck_scale > 0

    @property
    def holds_radii(self) -> bool:
        """True if gradients treat Born radii and surface areas as constants."""
        return self.of_surface

    @property
    def nonpolar(self) -> str | None:
        """Nonpolar term that belongs to the model, a key of SURFACES; None if users choose one."""
        return "sgb" if self.of_surface else None

    def name_of_radii(self, atoms: Atoms) -> str:
        """Return the name of the set of radii that the model uses: that of the GB radii, or "sgb" for Atoms.sgb."""
        return "sgb" if self.of_surface else atoms.gb_radii_set

    @property
    def by_atom(self) -> bool:
        """True if the coefficients of the radius function depend on the element."""
        return self.alpha is None

    @property
    def has_negative(self) -> bool:
        """True if elements have negative scale factors, whose spheres reduce the integral."""
        return self.elements is not None and self.elements.has_negative

    @property
    def definitions(self) -> dict[str, int]:
        """Macros of kernels that compute Born radii from Born integrals (cl/physics/gb_radius.clh)."""
        return {self.function: 1} | ({"BY_ATOM": 1} if self.by_atom else {})

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameter arrays that atoms must have."""
        if self.vacuum:
            return ()
        if self.of_surface:
            return ("sgb",)
        return ("gb_radii",) if self.elements else ("gb_radii", "gb_scales")

    def scales(self, atoms: Atoms) -> Floats:
        """Return the HCT scale factors, (n,)."""
        if self.elements is None:
            assert atoms.gb_scales is not None
            return atoms.gb_scales
        symbols = symbols_of(atoms, self.name)
        scales = self.elements.scales_of(symbols)
        return np.where(is_nucleic(atoms), self.nucleic.scales_of(symbols), scales) if self.nucleic else scales

    def coefficients(self, atoms: Atoms) -> Floats | None:
        """Return alpha, beta and gamma of each atom, (n, 3); None if all atoms share them."""
        if not self.by_atom or self.elements is None:
            return None
        symbols = symbols_of(atoms, self.name)
        values = self.elements.coefficients_of(symbols)
        if self.nucleic:
            values = np.where(is_nucleic(atoms)[:, None], self.nucleic.coefficients_of(symbols), values)
        return values

    def spheres(self, atoms: Atoms, offset: float, nearest_necks: bool = False) -> Spheres:
        """Return the spheres of a molecule's atoms. offset : A; nearest_necks : `nearest` of Necks.of

        Raises InputError for atoms that lack parameters of the model, ParameterError for radii outside the neck tables.
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
