// Energy of each row, and whether all of its results are finite. One work-group of GROUP work-items per row.
#include "common/real.clh"
#include "engine/rows.clh"

#ifndef GROUP
#error "GROUP: work-items of a work-group, a power of two"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void row_energies(
    ENSEMBLE,
    global const int *restrict further,  // (n_rows, 2) energies after the gradient in the results: index of the first, count
    const int has_radii,                 // whether Born radii are checked
    global fine *restrict energies,      // (n_rows) [kcal/mol]
    global int *restrict are_numbers)    // (n_rows) 1, or 0 for rows that failed
{
    const Structure own = structure_here(rows, steps, listed, bytes);
    const Row row = rows[own.number];
    const int item = get_local_id(0), first = further[2 * own.number], count = further[2 * own.number + 1];
    const size_t n_pass = (size_t)N_TERMS * row.n_energies;
    fine sum = 0, sizes = 0;
    for (size_t k = item; k < n_pass; k += GROUP) {
        if (!(row.counted >> k % N_TERMS & 1)) continue;
        sum += own.results[k];
    }
    for (size_t k = item; k < (size_t)count; k += GROUP) sum += own.results[first + k];
    int good = 1;
    for (size_t k = n_pass + item; k < (size_t)first; k += GROUP) sizes += fabs((fine)own.results[k]);
    if (has_radii)
        for (int k = item; k < row.n_atoms; k += GROUP) good = good && own.radii[k] > 0;
    good = good && isfinite(sum) && isfinite(sizes);

    local fine sums[GROUP];
    local int all_good[GROUP];
    sums[item] = sum;
    all_good[item] = good;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) {
            sums[item] += sums[item + half_size];
            all_good[item] = all_good[item] && all_good[item + half_size];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item > 0) return;
    energies[own.number] = sums[0];
    are_numbers[own.number] = all_good[0];
}
