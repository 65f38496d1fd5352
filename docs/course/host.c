/* The host program of chapter 1 in C: the five steps for the kernel `gather` of a file, and a check against a loop.

   cc -O2 docs/course/host.c -lOpenCL -lm -o host && ./host docs/course/mine/gather.cl */

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ATOMS = 96, N = 32 };

static void stop_on(cl_int error, const char *what)
{
    if (error == CL_SUCCESS) return;
    fprintf(stderr, "%s: OpenCL's error %d\n", what, error);
    exit(1);
}

int main(int count, char **words)
{
    if (count != 2) return fprintf(stderr, "usage: host KERNEL.cl\n"), 2;
    FILE *file = fopen(words[1], "rb");
    if (!file) return perror(words[1]), 1;
    static char text[1 << 16];
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);

    cl_float4 atoms[ATOMS], corner = {{-16, -16, -16, 1}}; /* x, y, z, charge; first point and spacing */
    for (int a = 0; a < ATOMS; ++a)
        for (int c = 0; c < 4; ++c) atoms[a].s[c] = (rand() % 2000 - 1000) * (c < 3 ? 0.0153f : 0.3f);

    /* A device, a context, a queue that takes times. */
    cl_int error;
    cl_platform_id platform;
    cl_device_id device;
    char name[256];
    stop_on(clGetPlatformIDs(1, &platform, NULL), "the loader knows no runtime; chapter 1 has two");
    stop_on(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no device");
    clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    stop_on(error, "context");
    cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &error);
    stop_on(error, "queue");

    /* 1. Compile. */
    const char *source = text;
    cl_program program = clCreateProgramWithSource(context, 1, &source, &length, &error);
    if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) {
        static char log[1 << 14];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        return fprintf(stderr, "%s\n", log), 1;
    }
    cl_kernel kernel = clCreateKernel(program, "gather", &error);
    stop_on(error, "kernel gather");

    /* 2. Copy in. */
    cl_mem in = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof atoms, atoms, &error);
    stop_on(error, "atoms");
    cl_mem out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(float) * N * N * N, NULL, &error);
    stop_on(error, "map");

    /* 3. Launch: arguments by their place, a work-item for each point. */
    const cl_int n_atoms = ATOMS, n = N;
    clSetKernelArg(kernel, 0, sizeof n_atoms, &n_atoms);
    clSetKernelArg(kernel, 1, sizeof in, &in);
    for (cl_uint place = 2; place < 5; ++place) clSetKernelArg(kernel, place, sizeof n, &n);
    clSetKernelArg(kernel, 5, sizeof corner, &corner);
    clSetKernelArg(kernel, 6, sizeof out, &out);
    const size_t size[3] = {N, N, N};
    cl_event event;
    stop_on(clEnqueueNDRangeKernel(queue, kernel, 3, NULL, size, NULL, 0, NULL, &event), "launch");

    /* 4. Wait. 5. Copy out. */
    static float map[N * N * N];
    clWaitForEvents(1, &event);
    stop_on(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof map, map, 0, NULL, NULL), "copy out");

    cl_ulong begin, end;
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL);
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    double worst = 0, largest = 0;
    for (int p = 0; p < N * N * N; p += 101) {
        double sum = 0;
        for (int a = 0; a < ATOMS; ++a) {
            double x = corner.s[0] + p % N - atoms[a].s[0], y = corner.s[1] + p / N % N - atoms[a].s[1];
            double z = corner.s[2] + p / (N * N) - atoms[a].s[2];
            sum += atoms[a].s[3] / sqrt(x * x + y * y + z * z);
        }
        worst = fmax(worst, fabs(sum - map[p]));
        largest = fmax(largest, fabs(sum));
    }
    printf("%s: %.3f ms, error %.1e\n", name, 1e-6 * (double)(end - begin), worst / largest);
    return worst / largest < 1e-4 ? 0 : 1;
}
