// One step of a prefix sum: adds to each number the one `distance` before it; 1, 2, 4, ... up to n.
kernel void scan_step(
    const int n, const int distance, global const int *before,  // (n)
    global int *after)                                          // (n)
{
    const int i = get_global_id(0);
    if (i < n) after[i] = before[i] + (i >= distance ? before[i - distance] : 0);
}
