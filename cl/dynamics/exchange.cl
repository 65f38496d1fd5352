// Exchanges temperatures of neighbouring rungs of a ladder by the Metropolis criterion (Sugita and Okamoto 1999): rows
// keep their atoms. Pairs start alternately at rung 0 and rung 1. One work-item per pair (first dimension) and ladder
// (second).
#include "common/real.clh"
#include "dynamics/ladder.clh"

kernel void exchange(
    const int n_rungs,
    const int n_ladders,
    global const int *restrict stopped,      // (n_rows) 0 or the reason for stopping
    global const fine *restrict energies,    // (n_rows) [kcal/mol]
    global const uint *restrict replicas,    // (n_rows)
    global const int *restrict first_rows,   // (n_ladders) row whose replica number seeds the random numbers
    global int *restrict row_of,             // (n_ladders, n_rungs) row at each rung
    global int *restrict rung_of,            // (n_rows) rung of each row
    global real *restrict temperatures,      // (n_rows) [K]
    global real *restrict scales,            // (n_rows) velocity scaling factors
    global int *restrict tried,              // (n_ladders, n_rungs) attempted exchanges of each rung with the next one
    global int *restrict accepted,           // (n_ladders, n_rungs)
    global int *restrict attempts,           // (n_ladders) attempts so far
    const uint number,                       // number of the attempt
    const uint seed)
{
    const int ladder = get_global_id(1);
    const int lower = 2 * (int)get_global_id(0) - (int)(number & 1), upper = lower + 1;
    if (ladder >= n_ladders || lower >= n_rungs) return;
    attempts[ladder] = number + 1;  // all work-items write the same value
    const size_t base = (size_t)ladder * n_rungs;
    const int i = lower < 0 ? -1 : row_of[base + lower], j = upper >= n_rungs ? -1 : row_of[base + upper];
    if (i >= 0) scales[i] = 1;
    if (j >= 0) scales[j] = 1;
    if (i < 0 || j < 0 || stopped[i] || stopped[j]) return;
    tried[base + lower] += 1;
    const fine cold = temperatures[i], warm = temperatures[j];
    const fine gain = ((fine)1 / cold - (fine)1 / warm) / BOLTZMANN * (energies[i] - energies[j]);
    if (!is_accepted(gain, seed, replicas[first_rows[ladder]], number, lower)) return;
    accepted[base + lower] += 1;
    row_of[base + lower] = j;
    row_of[base + upper] = i;
    swap_rungs(i, j, lower, upper, rung_of, temperatures, scales);
}
