// One work-item adds runs of 256 numbers, each to a sum of its own, and adds these.
enum { RUN = 256 };
kernel void sum_runs(
    const int n, global const float *numbers,  // (n)
    global float *total)                       // (1)
{
    float all = 0;
    for (int first = 0; first < n; first += RUN) {
        float sum = 0;
        for (int k = first; k < min(first + RUN, n); ++k) sum += numbers[k];
        all += sum;
    }
    total[0] = all;
}
