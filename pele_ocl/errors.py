"""Everything pele-ocl raises on purpose.

Each message is one sentence that names the file, line or atom, and says what to do. The command line prints it
after ``Error:`` and exits with 1.
"""

from __future__ import annotations


class PeleError(Exception):
    """Base of every error a user can cause or mend."""


class InputError(PeleError):
    """Values that cannot be computed with: wrong shapes, infinite coordinates, coincident atoms."""


class FormatError(PeleError):
    """A file that does not hold what its format promises."""


class ParameterError(PeleError):
    """An atom or residue for which the force field or the solvent table has no parameters."""


class DeviceError(PeleError):
    """No OpenCL device, a choice that matches none, or a device without what the work needs."""


class KernelBuildError(PeleError):
    """A kernel that the device's compiler refused."""
