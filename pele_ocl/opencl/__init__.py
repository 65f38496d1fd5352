"""OpenCL, which nothing else touches: runtimes, devices, kernels, timing."""
