// A work-group owns an atom: each item sums a part of its segment, then a tree adds the parts.
enum { GROUP = 64 };
kernel void tree_segments(
    const int n_atoms, global const float4 *stored,  // (n_pairs) gradients of pairs
    global const int *index,                         // (n_pairs) numbers of pairs, atom by atom
    global const int *offsets,                       // (n_atoms + 1) where each segment begins
    const float sign,                                // 1 for first atoms, -1 for second atoms
    global float4 *gradient)                         // (n_atoms), added to
{
    local float4 shares[GROUP];
    const int i = get_group_id(0), item = get_local_id(0);
    float4 sum = 0;
    for (int k = offsets[i] + item; k < offsets[i + 1]; k += GROUP) sum += stored[index[k]];
    shares[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) shares[item] += shares[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) gradient[i] += sign * shares[0];
}
