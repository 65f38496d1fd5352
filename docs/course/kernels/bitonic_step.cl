// One step of a bitonic sort: work-item c exchanges two keys if they are in the wrong order.
kernel void bitonic_step(
    const uint span,      // length of the runs created by this merge, a power of two
    const uint distance,  // between the two keys: span / 2, span / 4, ... 1
    global ulong *keys)   // their number is a power of two
{
    const uint c = get_global_id(0), low = c / distance * 2 * distance + c % distance;
    const uint high = low + distance;
    const bool ascending = (low & span) == 0;
    if ((keys[low] > keys[high]) == ascending) {
        const ulong key = keys[low];
        keys[low] = keys[high];
        keys[high] = key;
    }
}
