// One work-item sums runs of 256 numbers separately, and adds these sums.
enum { RUN = 256 };
kernel void sum_runs(
    const int n, global const float *values,  // (n)
    global float *sums)                       // (1)
{
    float all = 0;
    for (int first = 0; first < n; first += RUN) {
        float sum = 0;
        for (int k = first; k < min(first + RUN, n); ++k) sum += values[k];
        all += sum;
    }
    sums[0] = all;
}
