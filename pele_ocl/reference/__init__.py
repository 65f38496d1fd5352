"""Reference implementation of all quantities in NumPy float64, without OpenCL, used by the tests."""
