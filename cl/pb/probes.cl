// Probes that touch an atom and overlap no other: points of the spheres around atoms, and of the circles where two meet.
#include "common/real.clh"
#include "pb/cells.clh"
#pragma OPENCL FP_CONTRACT OFF

// Point of the sphere around an atom.
INLINE total4 point_of(total4 atom, total4 towards) {
    const total4 point = {
        atom.w * towards.x + atom.x, atom.w * towards.y + atom.y, atom.w * towards.z + atom.z, 0};
    return point;
}

#define POINTS (PLANES ? 256 : 16)  // that a work-item does, more on CPUs: pele_ocl/pb/probes.py

// Tells if a sphere holds a point, its surface left out.
INLINE int holds(total4 sphere, total4 point) {
    const total x = point.x - sphere.x, y = point.y - sphere.y, z = point.z - sphere.z;
    return x * x + y * y + z * z < sphere.w * sphere.w;
}

// Finds another atom than `own` that holds a point, or -1.
INLINE int holder_of(total4 point, int own, CELLS_TAKEN) {
    const int4 at = cell_of(point.xyz, cells, place);
    for (int k = max(at.z - 1, 0); k <= min(at.z + 1, cells.z - 1); ++k) {
        for (int j = max(at.y - 1, 0); j <= min(at.y + 1, cells.y - 1); ++j) {
            const int row = (k * cells.y + j) * cells.x;
            const int end = cell_starts[row + min(at.x + 1, cells.x - 1) + 1];
            for (int t = cell_starts[row + max(at.x - 1, 0)]; t < end; ++t) {
                if (cell_members[t] != own && holds(cell_spheres[cell_members[t]], point)) return cell_members[t];
            }
        }
    }
    return -1;
}

// Marks the points that no other atom holds, and counts them. A work-item does some points of the sphere around an
// atom; the atom that holds one holds its neighbours, too, as a rule. Atoms have radii with the probe's.
kernel void find_exposed(
    const int n_points,
    const int n_chunks,  // of the points of an atom
    CELLS,
    global const total4 *restrict sphere,      // (n_points) of radius 1
    global const uchar *restrict has_points,   // (atoms)
    global uchar *restrict exposed,            // (atoms, n_points)
    global int *restrict counts)               // (atoms, n_chunks)
{
    const int chunk = get_global_id(0), first = POINTS * chunk, row = get_global_id(2);
    const int a = first_spheres[row] + get_global_id(1);
    if (chunk >= n_chunks || a >= first_spheres[row + 1]) return;
    TAKE_CELLS(row);
    int holder = -1, count = 0;
    if (has_points[a]) {
        for (int p = first; p < min(first + POINTS, n_points); ++p) {
            const total4 point = point_of(cell_spheres[a], sphere[p]);
            if (holder < 0 || !holds(cell_spheres[holder], point)) holder = holder_of(point, a, CELLS_PASSED);
            exposed[(size_t)a * n_points + p] = holder < 0;
            count += holder < 0;
        }
    }
    counts[(size_t)a * n_chunks + chunk] = count;
}

// Writes the probes, in the order of the atoms and of the points. A work-item does as many points.
kernel void list_exposed(
    const int n_points,
    const int n_chunks,
    CELLS,
    global const total4 *restrict sphere,
    global const uchar *restrict exposed,
    global const int *restrict starts,  // (atoms * n_chunks + 1) of each work-item's among the probes
    const total probe,
    global total4 *restrict probes,
    global int *restrict rows_of_probes)
{
    const int chunk = get_global_id(0), first = POINTS * chunk, row = get_global_id(2);
    const int a = first_spheres[row] + get_global_id(1);
    if (chunk >= n_chunks || a >= first_spheres[row + 1]) return;
    int at = starts[(size_t)a * n_chunks + chunk];
    if (at == starts[(size_t)a * n_chunks + chunk + 1]) return;
    for (int p = first; p < min(first + POINTS, n_points); ++p) {
        if (!exposed[(size_t)a * n_points + p]) continue;
        total4 point = point_of(cell_spheres[a], sphere[p]);
        point.w = probe;
        rows_of_probes[at] = row;
        probes[at++] = point;
    }
}

// TINY : angle by which rounding may not decide
#if DOUBLES
#define TURN (2 * M_PI)
#define TINY 1e-9
#else
#define TURN (2 * M_PI_F)
#define TINY 1e-4f
#endif

// Circle where two spheres meet; points of it are middle + radius (cos(angle) u + sin(angle) v).
typedef struct { total3 middle, u, v; total radius; } Circle;

// Finds the circle, and tells if there is one.
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

// Angle as it is between 0 and a turn.
INLINE total within_turn(total angle) { return angle - TURN * floor(angle / TURN); }

// Points of a circle that a sphere holds: x cos(angle) + y sin(angle) > least. reach : length of (x, y)
typedef struct { total x, y, reach, least; } Held;

INLINE Held held_by(total4 sphere, Circle circle) {
    const total3 apart = sphere.xyz - circle.middle;
    Held held = {dot(apart, circle.u), dot(apart, circle.v), 0, 0};
    held.reach = sqrt(held.x * held.x + held.y * held.y);
    held.least = (circle.radius * circle.radius + dot(apart, apart) - sphere.w * sphere.w) / (2 * circle.radius);
    return held;
}

// Goes through the spheres in the cells around a cell: in those beside it are all that hold a point of it, and with
// `reach` 2 all that meet a sphere of it.
#define FOR_NEAR(t, at, reach) \
    for (int k = max(at.z - reach, 0); k <= min(at.z + reach, cells.z - 1); ++k) \
        for (int j = max(at.y - reach, 0); j <= min(at.y + reach, cells.y - 1); ++j) \
            for (int t = cell_starts[(k * cells.y + j) * cells.x + max(at.x - reach, 0)]; \
                 t < cell_starts[(k * cells.y + j) * cells.x + min(at.x + reach, cells.x - 1) + 1]; ++t)

INLINE total3 point_at(Circle circle, total angle) {
    return circle.middle + circle.radius * (cos(angle) * circle.u + sin(angle) * circle.v);
}

// Gives the angle, from `angle` on, at which no sphere but those of atoms a and b holds a point of their circle. A turn
// or more: there is none.
INLINE total angle_not_held(Circle circle, int a, int b, total angle, CELLS_TAKEN) {
    for (int has_moved = 1; has_moved && angle < TURN;) {
        has_moved = 0;
        const total3 point = point_at(circle, angle);
        const int4 at = cell_of(point, cells, place);
        FOR_NEAR(t, at, 1) {
            const int c = cell_members[t];
            const total4 sphere = cell_spheres[c];
            const total3 apart = point - sphere.xyz;
            const total slack = 8 * TINY * (sphere.w + circle.radius) * (sphere.w + circle.radius);
            if (dot(apart, apart) > sphere.w * sphere.w + slack || c == a || c == b) continue;
            const Held held = held_by(sphere, circle);
            if (held.least <= -held.reach) return TURN;
            if (held.least >= held.reach) continue;
            const total spread = acos(held.least / held.reach);
            const total past = within_turn(angle - atan2(held.y, held.x) + spread + TINY);
            if (spread <= TINY || past >= 2 * spread) continue;
            angle += 2 * spread - past + TINY;
            has_moved = 1;
        }
    }
    return angle;
}

// Goes around the circle where the spheres of atoms a and b meet, and finds the parts that no other sphere holds. Each
// has points at both ends and between them, at most `step` apart. Gives their number, and writes them to `probes`.
INLINE int points_of_circle(
    Circle circle, int a, int b, int4 at, total step, int is_listing, total probe, global total4 *probes, CELLS_TAKEN)
{
    int count = 0;
    for (total angle = 0; (angle = angle_not_held(circle, a, b, angle, CELLS_PASSED)) < TURN;) {
        total end = TURN;
        FOR_NEAR(t, at, 2) {
            const int c = cell_members[t];
            const total3 apart = cell_spheres[c].xyz - circle.middle;
            const total far = cell_spheres[c].w + circle.radius;
            if (dot(apart, apart) >= far * far || c == a || c == b) continue;
            const Held held = held_by(cell_spheres[c], circle);
            if (held.least >= held.reach) continue;
            const total spread = acos(fmax(held.least / held.reach, (total)-1));
            if (spread > TINY) end = fmin(end, angle + within_turn(atan2(held.y, held.x) - spread - angle));
        }
        const int pieces = max(1, (int)ceil((end - angle) * circle.radius / step));
        for (int p = 0; is_listing && p <= pieces; ++p) {
            const total own = angle + (end - angle) * p / pieces;
            total4 point;
            point.xyz = point_at(circle, own);
            point.w = probe;
            probes[count + p] = point;
        }
        count += pieces + 1;
        angle = end;
    }
    return count;
}

#define CIRCLES const int n_lanes, CELLS, global const uchar *restrict has_points, const total step, const total probe

// A work-item does one of `n_lanes` shares of an atom's circles with the atoms after it.
INLINE int points_of_circles(
    int lane, int a, int n_lanes, CELLS_TAKEN, global const uchar *has_points, total step, total probe, int is_listing,
    global total4 *probes)
{
    const int4 at = cell_of(cell_spheres[a].xyz, cells, place);
    int number = 0, count = 0;
    Circle circle;
    FOR_NEAR(t, at, 2) {
        const int b = cell_members[t];
        if (b <= a || !(has_points[a] || has_points[b])) continue;
        const total3 apart = cell_spheres[b].xyz - cell_spheres[a].xyz;
        const total far = cell_spheres[b].w + cell_spheres[a].w;
        if (dot(apart, apart) >= far * far || number++ % n_lanes != lane) continue;
        if (!circle_of(cell_spheres[a], cell_spheres[b], &circle)) continue;
        global total4 *own = is_listing ? probes + count : probes;
        count += points_of_circle(circle, a, b, at, step, is_listing, probe, own, CELLS_PASSED);
    }
    return count;
}

kernel void count_circle_points(CIRCLES, global int *restrict counts)  // counts : (atoms, n_lanes)
{
    const int lane = get_global_id(0), row = get_global_id(2), a = first_spheres[row] + get_global_id(1);
    if (lane >= n_lanes || a >= first_spheres[row + 1]) return;
    TAKE_CELLS(row);
    counts[(size_t)a * n_lanes + lane] =
        points_of_circles(lane, a, n_lanes, CELLS_PASSED, has_points, step, probe, 0, (global total4 *)0);
}

// Writes the probes behind the ones of the spheres.
kernel void list_circle_points(
    CIRCLES,
    global const int *restrict starts,  // (atoms * n_lanes + 1) of each work-item's
    const int first,
    global total4 *restrict probes,
    global int *restrict rows_of_probes)
{
    const int lane = get_global_id(0), row = get_global_id(2), a = first_spheres[row] + get_global_id(1);
    if (lane >= n_lanes || a >= first_spheres[row + 1]) return;
    const int begin = starts[(size_t)a * n_lanes + lane], end = starts[(size_t)a * n_lanes + lane + 1];
    if (begin == end) return;
    TAKE_CELLS(row);
    for (int t = begin; t < end; ++t) rows_of_probes[first + t] = row;
    points_of_circles(lane, a, n_lanes, CELLS_PASSED, has_points, step, probe, 1, probes + first + begin);
}
