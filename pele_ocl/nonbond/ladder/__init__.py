"""Ways of the thesis to add up a gradient over a pair list, from one loop to index lists."""
