"""A molecule's tiles on the device and the series of the HCT integral, which solvent and energy share."""
