"""What the engines of solvent and energy share: a molecule's tiles on the device, and the series of the HCT integral."""
