"""The only place that touches OpenCL: runtimes, devices, kernels, timing."""
