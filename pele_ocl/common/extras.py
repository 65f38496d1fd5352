"""Optional libraries, imported on first use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from .errors import InputError

# Module -> name of the library in messages, and how to install it.
LIBRARIES = {
    "openmm": ("OpenMM", "pip install 'pele-ocl[openmm]'"),
    "pdbfixer": ("PDBFixer", "pip install 'pele-ocl[openmm]'"),
    "MDAnalysis": ("MDAnalysis", "pip install 'pele-ocl[mdanalysis]'"),
    "parmed": ("ParmEd", "pip install 'pele-ocl[parmed]'"),
    "mdtraj": ("MDTraj", "pip install 'pele-ocl[trajectories]'"),
    "distributed": ("Dask", "pip install 'pele-ocl[cluster]'"),
    "cryptography": ("cryptography", "pip install 'pele-ocl[cluster]'"),
    "propka": ("PROPKA", "pip install 'pele-ocl[ph]'"),
    "matplotlib": ("matplotlib", "pip install 'pele-ocl[plot]'"),
    "plotly": ("plotly", "pip install 'pele-ocl[view]'"),
    "rdkit": ("RDKit", "pip install 'pele-ocl[ligands]'"),
    "yaml": ("PyYAML", "pip install pyyaml"),
    "torch": ("torch", "pip install 'pele-ocl[torch]'"),
    "jax": ("JAX", "pip install 'pele-ocl[jax]'"),
    "pandas": ("pandas", "pip install pandas"),
    "ase": ("ASE", "pip install 'pele-ocl[ase]'"),
}


def extra(name: str, purpose: str, otherwise: str = "") -> ModuleType:
    """Import an optional library, or one of its modules, by name.

    purpose : feature that needs it, for the message, such as "an OpenMM System"
    otherwise : alternatives, for the end of the message

    Raises InputError with installation instructions if it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise missing(name, purpose, otherwise) from None


def missing(name: str, purpose: str, otherwise: str = "") -> InputError:
    """Return the error for a library that is not installed; parameters as in `extra`."""
    library, install = LIBRARIES[name.split(".")[0]]
    return InputError(
        f"{purpose} needs {library}, which is not installed: {install}{f'; or {otherwise}' if otherwise else ''}"
    )
