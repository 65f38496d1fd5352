"""OpenMM: a System turned into Atoms, and force fields in OpenMM's XML files."""
