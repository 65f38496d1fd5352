// A work-group owns an atom: all items load its segment into local memory, and only item 0 sums it.
enum { ROOM = 500 };
kernel void item0(
    const int n_atoms, global const float4 *stored,  // (n_pairs) gradients of pairs
    global const int *index,                         // (n_pairs) numbers of pairs, atom by atom
    global const int *offsets,                       // (n_atoms + 1); at most ROOM pairs per atom
    const float sign,                                // 1 for first atoms, -1 for second atoms
    global float4 *gradient)                         // (n_atoms), added to
{
    local float4 segment[ROOM];
    const int i = get_group_id(0), item = get_local_id(0), n = offsets[i + 1] - offsets[i];
    for (int k = item; k < n; k += get_local_size(0)) segment[k] = stored[index[offsets[i] + k]];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item > 0) return;
    float4 sum = 0;
    for (int k = 0; k < n; ++k) sum += segment[k];
    gradient[i] += sign * sum;
}
