// One work-item adds all numbers to one total, as one writes it in C.
kernel void sum_loop(
    const int n, global const float *numbers,  // (n)
    global float *total)                       // (1)
{
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += numbers[k];
    total[0] = sum;
}
