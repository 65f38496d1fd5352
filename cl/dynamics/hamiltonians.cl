// Exchanges rungs of a ladder with all data that is specific to a row: temperature, scales, restraints and biases, by
// the Metropolis criterion (Fukunishi, Watanabe and Takada, J. Chem. Phys. 2002, 116, 9058). Rows keep their atoms.
// Their Hamiltonians are swapped, energies are evaluated, and rejected rows are swapped back.
#include "common/real.clh"
#include "dynamics/ladder.clh"

// Selects the rows to swap at an attempt. One work-item per rung (first dimension) and ladder (second).
kernel void pair_up(
    const int n_rungs,
    const int n_ladders,
    const int n_inner,                       // rungs along the second dimension of a two-dimensional ladder; else all
    const uint number,                       // number of the attempt
    global const int *restrict stopped,      // (all rows) 0 or the reason for stopping
    global const int *restrict row_of,       // (n_ladders, n_rungs) row at each rung
    global const fine *restrict energies,    // (all rows) [kcal/mol]
    global fine *restrict before,            // (all rows) copy of the energies before the swap
    global int *restrict partners,           // (all rows) row to swap with; the row itself for none
    global real *restrict scales)            // (all rows) velocity scaling factors
{
    const int rung = get_global_id(0), ladder = get_global_id(1);
    if (rung >= n_rungs || ladder >= n_ladders) return;
    global const int *rows = row_of + (size_t)ladder * n_rungs;
    const int other = neighbour(rung, number, n_inner, n_rungs), row = rows[rung];
    const bool swaps = other >= 0 && !stopped[row] && !stopped[rows[other]];
    partners[row] = swaps ? rows[other] : row;
    before[row] = energies[row];
    scales[row] = 1;
}

// Swaps the row-specific data of partners. One work-item per word (first dimension) and row (second).
kernel void swap_images(
    const int n_words,
    global const int *restrict rows,         // that are on a ladder, of one molecule
    global const int *restrict partners,     // (all rows) byte offset of each row
    global const ulong *restrict places,     // (all rows) bytes at which a row begins
    global uchar *bytes)                     // of all rows
{
    const int word = get_global_id(0), row = rows[get_global_id(1)], other = partners[row];
    if (word >= n_words || other <= row) return;
    global ulong *own = (global ulong *)(bytes + places[row]) + word;
    global ulong *its = (global ulong *)(bytes + places[other]) + word;
    const ulong kept = *own;
    *own = *its;
    *its = kept;
}

// Accepts or rejects by the energies after the swap. Only rejected rows keep their partners, with whom they swap back.
// One work-item per rung (first dimension) and ladder (second).
kernel void decide(
    const int n_rungs,
    const int n_ladders,
    const int n_inner,
    const uint number,                       // number of the attempt
    const uint seed,
    global const fine *restrict before,      // (all rows) [kcal/mol]
    global const fine *restrict energies,    // (all rows) after the swap
    global const uint *restrict replicas,    // (all rows)
    global const int *restrict first_rows,   // (n_ladders) row whose replica number seeds the random numbers
    global int *restrict partners,           // (all rows)
    global int *restrict row_of,             // (n_ladders, n_rungs)
    global int *restrict rung_of,            // (all rows)
    global real *restrict temperatures,      // (all rows) [K]
    global real *restrict scales,            // (all rows) velocity scaling factors
    global int *restrict tried,              // (dimensions, n_ladders, n_rungs) attempted exchanges of each rung with the next one
    global int *restrict accepted,           // (dimensions, n_ladders, n_rungs)
    global int *restrict attempts)           // (n_ladders) attempts so far
{
    const int lower = get_global_id(0), ladder = get_global_id(1);
    if (lower >= n_rungs || ladder >= n_ladders) return;
    attempts[ladder] = number + 1;  // all work-items write the same value
    const int upper = neighbour(lower, number, n_inner, n_rungs);
    if (upper < lower) return;
    const size_t base = (size_t)ladder * n_rungs;
    const size_t place = base + lower + (n_inner < n_rungs && number % 2 == 0 ? (size_t)n_ladders * n_rungs : 0);
    const int i = row_of[base + lower], j = row_of[base + upper];
    if (partners[i] != j) return;
    tried[place] += 1;
    const fine cold = temperatures[i], warm = temperatures[j];
    const fine gain =
        ((before[i] - energies[j]) / cold + (before[j] - energies[i]) / warm) / BOLTZMANN;
    if (!is_accepted(gain, seed, replicas[first_rows[ladder]], number, lower)) return;
    accepted[place] += 1;
    row_of[base + lower] = j;
    row_of[base + upper] = i;
    swap_rungs(i, j, lower, upper, rung_of, temperatures, scales);
    partners[i] = i;
    partners[j] = j;
}
