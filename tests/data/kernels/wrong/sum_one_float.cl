// check: sum --launch one -> precision
kernel void all(const int n, global const float *values, global float *sums)
{
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += values[i];
    sums[0] = sum;
}
