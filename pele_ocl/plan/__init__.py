"""The plan that solvent, nonbond and energy share: a molecule prepared once, evaluated in many conformations."""
