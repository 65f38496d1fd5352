"""The thesis' ways to add up a gradient over a pair list, from one loop to index lists: a course, not the engine."""
