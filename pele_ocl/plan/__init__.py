"""Plan that solvent, nonbond and energy build on: a molecule prepared once, evaluated in many conformations."""
