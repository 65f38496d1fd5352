// A work-item owns an atom and sums the stored gradients of its pairs; no other one writes there.
kernel void segments(
    const int n_atoms, global const float4 *stored,  // (n_pairs) gradients of pairs
    global const int *index,                         // (n_pairs) numbers of pairs, atom by atom
    global const int *offsets,                       // (n_atoms + 1) where each segment begins
    const float sign,                                // 1 for first atoms, -1 for second atoms
    global float4 *gradient)                         // (n_atoms), added to
{
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    float4 sum = 0;
    for (int k = offsets[i]; k < offsets[i + 1]; ++k) sum += stored[index[k]];
    gradient[i] += sign * sum;
}
