// check: sum --launch one -> crash
kernel void all(const int n, global const float *values, global float *sums)
{
    float sum = 0;
    for (long i = 0; i < n; ++i) sum += values[i * 40000000000L];
    sums[0] = sum;
}
