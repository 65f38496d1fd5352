// Probes that touch an atom and overlap no other: points on the spheres around atoms, and on the circles where two
// spheres intersect.
#include "common/real.clh"
#include "pb/cells.clh"
#pragma OPENCL FP_CONTRACT OFF

// Point on the sphere around an atom.
INLINE total4 point_of(total4 atom, total4 towards) {
    const total4 point = {
        atom.w * towards.x + atom.x, atom.w * towards.y + atom.y, atom.w * towards.z + atom.z, 0};
    return point;
}

// TINY : angular tolerance for rounding errors
#if DOUBLES
#define TURN (2 * M_PI)
#define TINY 1e-9
#else
#define TURN (2 * M_PI_F)
#define TINY 1e-4f
#endif

#define POINTS (PLANES ? 256 : 16)  // per work-item, more on CPUs: pele_ocl/pb/probes.py

// Whether a point is strictly inside a sphere.
INLINE int holds(total4 sphere, total4 point) {
    const total x = point.x - sphere.x, y = point.y - sphere.y, z = point.z - sphere.z;
    return x * x + y * y + z * z < sphere.w * sphere.w;
}

// Loops over the spheres in the cells around a cell: those within `reach` 2 include all that intersect a sphere of it.
#define FOR_NEAR(t, at, reach) \
    for (int k = max(at.z - reach, 0); k <= min(at.z + reach, cells.shape.z - 1); ++k) \
        for (int j = max(at.y - reach, 0); j <= min(at.y + reach, cells.shape.y - 1); ++j) \
            for (int line_ = (k * cells.shape.y + j) * cells.shape.x, t = cells.starts[line_ + max(at.x - reach, 0)]; \
                 t < cells.starts[line_ + min(at.x + reach, cells.shape.x - 1) + 1]; ++t)

// Number of other atoms whose spheres intersect that of an atom; only these can contain points of it. They are written
// to neighbours[at] and on if `writes`.
INLINE int neighbours_of(int a, Cells cells, global int *neighbours, size_t at, int writes) {
    const total4 own = cells.spheres[a];
    const int4 cell = cell_of(own.xyz, cells);
    int count = 0;
    FOR_NEAR(t, cell, 2) {
        const total4 other = cells.spheres[cells.members[t]];
        const total3 apart = other.xyz - own.xyz;
        const total far = (own.w + other.w) * (1 + (total)TINY);
        if (cells.members[t] == a || dot(apart, apart) >= far * far) continue;
        if (writes) neighbours[at + count] = cells.members[t];
        ++count;
    }
    return count;
}

kernel void count_neighbours(CELLS, global int *restrict counts) {
    const int row = get_global_id(2), a = first_spheres[row] + get_global_id(0);
    if (a >= first_spheres[row + 1]) return;
    const Cells cells = CELLS_OF(row);
    counts[a] = neighbours_of(a, cells, (global int *)0, 0, 0);
}

kernel void list_neighbours(CELLS, global const int *restrict neighbour_starts, global int *restrict neighbours) {
    const int row = get_global_id(2), a = first_spheres[row] + get_global_id(0);
    if (a >= first_spheres[row + 1]) return;
    const Cells cells = CELLS_OF(row);
    neighbours_of(a, cells, neighbours, neighbour_starts[a], 1);
}

// first_atoms : (rows + 1) index of each row's first atom; atoms : radii include the probe; neighbours : of each atom
// from neighbour_starts[a] on
#define ATOMS global const int *restrict first_atoms, global const total4 *restrict atoms, \
    global const int *restrict neighbour_starts, global const int *restrict neighbours

// Neighbours of an atom: members first to end - 1, indices of atoms.
typedef struct {
    global const total4 *atoms;
    global const int *members;
    int first, end;
} Neighbours;
#define NEIGHBOURS_OF(a) {atoms, neighbours, neighbour_starts[a], neighbour_starts[(a) + 1]}

INLINE total4 sphere_of(Neighbours near, int t) { return near.atoms[near.members[t]]; }

// A neighbour that contains a point, or -1.
INLINE int holder_of(total4 point, Neighbours near) {
    for (int t = near.first; t < near.end; ++t) {
        if (holds(sphere_of(near, t), point)) return near.members[t];
    }
    return -1;
}

// Marks the points that no other atom contains, and counts them. A work-item tests some points on the sphere around an
// atom; the atom that contains a point usually contains the next ones, too. Radii of atoms include the probe.
kernel void find_exposed(
    const int n_points,
    const int n_chunks,  // of the points of an atom
    ATOMS,
    global const total4 *restrict sphere,      // (n_points) on the unit sphere
    global const uchar *restrict has_points,   // (atoms)
    global uchar *restrict exposed,            // (atoms, n_points)
    global int *restrict counts)               // (atoms, n_chunks)
{
    const int chunk = get_global_id(0), first = POINTS * chunk, row = get_global_id(2);
    const int a = first_atoms[row] + get_global_id(1);
    if (chunk >= n_chunks || a >= first_atoms[row + 1]) return;
    const Neighbours near = NEIGHBOURS_OF(a);
    int holder = -1, count = 0;
    if (has_points[a]) {
        for (int p = first; p < min(first + POINTS, n_points); ++p) {
            const total4 point = point_of(atoms[a], sphere[p]);
            if (holder < 0 || !holds(atoms[holder], point)) holder = holder_of(point, near);
            exposed[(size_t)a * n_points + p] = holder < 0;
            count += holder < 0;
        }
    }
    counts[(size_t)a * n_chunks + chunk] = count;
}

// Writes the probes, ordered by atoms and points. Each work-item processes the same points as before.
kernel void list_exposed(
    const int n_points,
    const int n_chunks,
    ATOMS,
    global const total4 *restrict sphere,
    global const uchar *restrict exposed,
    global const int *restrict starts,  // (atoms * n_chunks + 1) index of each work-item's first probe
    const total probe,
    global total4 *restrict probes,
    global int *restrict rows_of_probes)
{
    const int chunk = get_global_id(0), first = POINTS * chunk, row = get_global_id(2);
    const int a = first_atoms[row] + get_global_id(1);
    if (chunk >= n_chunks || a >= first_atoms[row + 1]) return;
    int at = starts[(size_t)a * n_chunks + chunk];
    if (at == starts[(size_t)a * n_chunks + chunk + 1]) return;
    for (int p = first; p < min(first + POINTS, n_points); ++p) {
        if (!exposed[(size_t)a * n_points + p]) continue;
        total4 point = point_of(atoms[a], sphere[p]);
        point.w = probe;
        rows_of_probes[at] = row;
        probes[at++] = point;
    }
}

// Intersection circle of two spheres; its points are middle + radius (cos(angle) u + sin(angle) v).
typedef struct { total3 middle, u, v; total radius; } Circle;

// Computes the circle; returns whether there is one.
INLINE int circle_of(total4 first, total4 second, Circle *circle) {
    const total3 apart = second.xyz - first.xyz;
    const total d2 = dot(apart, apart), d = sqrt(d2);
    if (d >= first.w + second.w || d <= fabs(first.w - second.w)) return 0;
    const total along = (d2 + first.w * first.w - second.w * second.w) / (2 * d);
    const total square = first.w * first.w - along * along;
    if (square <= 0) return 0;
    const total3 axis = apart / d, x = {1, 0, 0}, y = {0, 1, 0};
    circle->middle = first.xyz + along * axis;
    circle->u = normalize(cross(axis, fabs(axis.x) < (total)0.6 ? x : y));
    circle->v = cross(axis, circle->u);
    circle->radius = sqrt(square);
    return 1;
}

// Angle reduced to [0, 2 pi).
INLINE total within_turn(total angle) { return angle - TURN * floor(angle / TURN); }

// Arc of a circle inside a sphere: x cos(angle) + y sin(angle) > least. reach : length of (x, y)
typedef struct { total x, y, reach, least; } Held;

INLINE Held held_by(total4 sphere, Circle circle) {
    const total3 apart = sphere.xyz - circle.middle;
    Held held = {dot(apart, circle.u), dot(apart, circle.v), 0, 0};
    held.reach = sqrt(held.x * held.x + held.y * held.y);
    held.least = (circle.radius * circle.radius + dot(apart, apart) - sphere.w * sphere.w) / (2 * circle.radius);
    return held;
}

INLINE total3 point_at(Circle circle, total angle) {
    return circle.middle + circle.radius * (cos(angle) * circle.u + sin(angle) * circle.v);
}

#define MOST_HOLDERS 16  // spheres collected by a work-item before their angles are computed

// Finds neighbours from *t on, other than atom b, that may contain points of a circle; *t is then the next to test.
// They are collected before angles are computed, since work-items of a GPU's group find different ones and would
// diverge.
INLINE int list_holders(total3 point, Circle circle, int b, int *t, int *holders, Neighbours near) {
    int count = 0;
    for (; *t < near.end && count < MOST_HOLDERS; ++*t) {
        const int other = near.members[*t];
        const total4 sphere = near.atoms[other];
        const total3 apart = point - sphere.xyz;
        const total slack = 8 * TINY * (sphere.w + circle.radius) * (sphere.w + circle.radius);
        if (dot(apart, apart) <= sphere.w * sphere.w + slack && other != b) holders[count++] = other;
    }
    return count;
}

// The first angle, from `angle` on, at which no sphere other than those of atoms a and b contains a point of their
// circle; a full turn or more if there is none. The neighbours are those of a.
INLINE total angle_not_held(Circle circle, int b, total angle, Neighbours near) {
    total3 point = point_at(circle, angle);
    int has_moved = 0, holders[MOST_HOLDERS];
    for (int t = near.first; angle < TURN;) {
        const int count = list_holders(point, circle, b, &t, holders, near);
        for (int h = 0; h < count; ++h) {
            const Held held = held_by(near.atoms[holders[h]], circle);
            if (held.least <= -held.reach) return TURN;
            if (held.least >= held.reach) continue;
            const total spread = acos(held.least / held.reach);
            const total past = within_turn(angle - atan2(held.y, held.x) + spread + TINY);
            if (spread <= TINY || past >= 2 * spread) continue;
            angle += 2 * spread - past + TINY;
            has_moved = 1;
        }
        if (t < near.end) continue;
        if (!has_moved) break;
        t = near.first;  // restart with all neighbours
        point = point_at(circle, angle);
        has_moved = 0;
    }
    return angle;
}

// Finds the arcs of the intersection circle of atoms a and b that are in no other sphere. Each arc has points at both
// ends and between them, at most `step` apart. Returns their number, and writes them to `probes`.
INLINE int points_of_circle(
    Circle circle, int b, total step, int is_listing, total probe, global total4 *probes, Neighbours near)
{
    int count = 0;
    for (total angle = 0; (angle = angle_not_held(circle, b, angle, near)) < TURN;) {
        total last = TURN;
        for (int t = near.first; t < near.end; ++t) {
            const total4 sphere = sphere_of(near, t);
            const total3 apart = sphere.xyz - circle.middle;
            const total far = sphere.w + circle.radius;
            if (dot(apart, apart) >= far * far || near.members[t] == b) continue;
            const Held held = held_by(sphere, circle);
            if (held.least >= held.reach) continue;
            const total spread = acos(fmax(held.least / held.reach, (total)-1));
            if (spread > TINY) last = fmin(last, angle + within_turn(atan2(held.y, held.x) - spread - angle));
        }
        const int pieces = max(1, (int)ceil((last - angle) * circle.radius / step));
        for (int p = 0; is_listing && p <= pieces; ++p) {
            const total own = angle + (last - angle) * p / pieces;
            total4 point;
            point.xyz = point_at(circle, own);
            point.w = probe;
            probes[count + p] = point;
        }
        count += pieces + 1;
        angle = last;
    }
    return count;
}

#define CIRCLES const int n_lanes, ATOMS, global const uchar *restrict has_points, const total step, const total probe

// Each work-item processes one of `n_lanes` shares of an atom's circles with the atoms after it: every n_lanes-th
// neighbour, so that the work-items of a GPU's group process circles at the same time.
INLINE int points_of_circles(
    int lane, int a, int n_lanes, Neighbours near, global const uchar *has_points, total step, total probe,
    int is_listing, global total4 *probes)
{
    int count = 0;
    Circle circle;
    for (int t = near.first + lane; t < near.end; t += n_lanes) {
        const int b = near.members[t];
        if (b <= a || !(has_points[a] || has_points[b])) continue;
        if (!circle_of(near.atoms[a], near.atoms[b], &circle)) continue;
        global total4 *own = is_listing ? probes + count : probes;
        count += points_of_circle(circle, b, step, is_listing, probe, own, near);
    }
    return count;
}

kernel void count_circle_points(CIRCLES, global int *restrict counts)  // counts : (atoms, n_lanes)
{
    const int lane = get_global_id(0), row = get_global_id(2), a = first_atoms[row] + get_global_id(1);
    if (lane >= n_lanes || a >= first_atoms[row + 1]) return;
    const Neighbours near = NEIGHBOURS_OF(a);
    counts[(size_t)a * n_lanes + lane] =
        points_of_circles(lane, a, n_lanes, near, has_points, step, probe, 0, (global total4 *)0);
}

// Writes the probes after those of the spheres.
kernel void list_circle_points(
    CIRCLES,
    global const int *restrict starts,  // (atoms * n_lanes + 1) index of each work-item's first probe
    const int first,
    global total4 *restrict probes,
    global int *restrict rows_of_probes)
{
    const int lane = get_global_id(0), row = get_global_id(2), a = first_atoms[row] + get_global_id(1);
    if (lane >= n_lanes || a >= first_atoms[row + 1]) return;
    const int begin = starts[(size_t)a * n_lanes + lane], end = starts[(size_t)a * n_lanes + lane + 1];
    if (begin == end) return;
    for (int t = begin; t < end; ++t) rows_of_probes[first + t] = row;
    const Neighbours near = NEIGHBOURS_OF(a);
    points_of_circles(lane, a, n_lanes, near, has_points, step, probe, 1, probes + first + begin);
}
