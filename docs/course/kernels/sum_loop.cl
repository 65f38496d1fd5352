// One work-item adds all numbers to one total, as in plain C.
kernel void sum_loop(
    const int n, global const float *values,  // (n)
    global float *sums)                       // (1)
{
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += values[k];
    sums[0] = sum;
}
