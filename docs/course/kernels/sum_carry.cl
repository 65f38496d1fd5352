// One work-item adds all numbers and compensates the rounding error of each addition (Kahan 1965).
kernel void sum_carry(
    const int n, global const float *values,  // (n)
    global float *sums)                       // (1)
{
    float sum = 0, lost = 0;
    for (int k = 0; k < n; ++k) {
        const float number = values[k] - lost, larger = sum + number;
        lost = (larger - sum) - number;
        sum = larger;
    }
    sums[0] = sum;
}
