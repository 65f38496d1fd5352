// Temperatures of neighbouring rungs of a ladder exchanged by Metropolis' rule (Sugita and Okamoto 1999): rows keep
// their atoms. Pairs begin at rung 0 and at rung 1 by turns. A work-item a pair (first dimension) of a ladder (second).
#include "common/real.clh"
#include "dynamics/ladder.clh"

kernel void exchange(
    const int n_rungs,
    const int n_ladders,
    global const int *restrict stopped,      // (n_rows) 0, or why a row stopped
    global const fine *restrict energies,    // (n_rows) [kcal/mol]
    global const uint *restrict replicas,    // (n_rows)
    global const int *restrict first_rows,   // (n_ladders) row by whose replica random numbers are drawn
    global int *restrict row_of,             // (n_ladders, n_rungs) row that has a temperature
    global int *restrict rung_of,            // (n_rows) rung that a row has
    global real *restrict temperatures,      // (n_rows) [K]
    global real *restrict scales,            // (n_rows) of velocities
    global int *restrict tried,              // (n_ladders, n_rungs) exchanges of a rung with the next one
    global int *restrict accepted,           // (n_ladders, n_rungs)
    global int *restrict attempts,           // (n_ladders) that were made
    const uint number,                       // of the attempt
    const uint seed)
{
    const int ladder = get_global_id(1);
    const int lower = 2 * (int)get_global_id(0) - (int)(number & 1), upper = lower + 1;
    if (ladder >= n_ladders || lower >= n_rungs) return;
    attempts[ladder] = number + 1;  // the same of all work-items
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
