/* Sets of indices along one dim: closed forms, and the walk over what two sets have in common.
 *
 * Let a cyclic set's period be block * g. Every period holds one block of the set, so a formula (below) gives
 * the number of indices of the unbounded set below x. That number minus lbase is the memory position. */
#include "layout/layout.h"

#include <assert.h>

/* Indices lo .. hi-1; none when lo == hi. */
typedef struct span {
    int64_t lo, hi;
} span;

/* How many indices in [0, x) have their block at position c, whatever the set's own bounds. */
static int64_t below(const dmi_dimset *set, int64_t x)
{
    if (set->g == 1) {
        return x;
    }
    int64_t period = set->block * set->g;
    int64_t rest = x % period - set->c * set->block;
    return x / period * set->block + DMI_MIN(DMI_MAX(rest, 0), set->block);
}

/* The range of neighbours that holds the first index >= x of the set, from that index on. */
static span run_from(const dmi_dimset *set, int64_t x)
{
    span none = {set->hi, set->hi};
    x = DMI_MAX(x, set->lo);
    if (x >= set->hi) {
        return none;
    }
    if (set->g == 1) {
        return (span){x, set->hi};
    }
    int64_t block = x / set->block;
    int64_t ahead = (set->c - block % set->g + set->g) % set->g;
    if (ahead > 0) {
        block += ahead;
        if (block > (set->hi - 1) / set->block) { /* compared as block numbers: an index could overflow */
            return none;
        }
        x = block * set->block;
    }
    int64_t start = block * set->block;
    return (span){x, set->hi - start < set->block ? set->hi : start + set->block};
}

/* The k-th index, not yet as the caller sees it. */
static int64_t nth(const dmi_dimset *set, int64_t k)
{
    int64_t first = run_from(set, set->lo).lo;
    if (set->g == 1) {
        return first + k;
    }
    int64_t place = below(set, first) + k;
    return (place / set->block * set->g + set->c) * set->block + place % set->block;
}

dmi_dimset dmi_dimset_interval(int64_t lo, int64_t count)
{
    assert(count >= 0);
    return (dmi_dimset){.lo = lo, .hi = lo + count, .block = 1, .g = 1, .lbase = lo, .count = count};
}

/* Bounds moved to the first and last index, and a set without gaps turned into an interval: then a set with g >
 * 1 always has gaps. */
static void tighten(dmi_dimset *set)
{
    set->count = set->lo < set->hi ? below(set, set->hi) - below(set, set->lo) : 0;
    if (set->count == 0) {
        int64_t origin = set->origin;
        *set = dmi_dimset_interval(origin, 0);
        set->origin = origin;
        return;
    }
    int64_t first = nth(set, 0), last = nth(set, set->count - 1);
    if (last - first == set->count - 1) {
        set->lbase = first - (below(set, first) - set->lbase);
        set->block = 1;
        set->g = 1;
        set->c = 0;
    }
    set->lo = first;
    set->hi = last + 1;
}

void dmi_dimset_clip(const dmi_dimset *in, int64_t lo, int64_t extent, dmi_dimset *out)
{
    assert(extent >= 0 && in->g >= 1 && in->block >= 1);
    *out = *in;
    out->origin = in->origin + lo;
    out->lo = DMI_MAX(in->lo, out->origin);
    out->hi = in->hi - out->origin < extent ? in->hi : out->origin + extent;
    tighten(out);
}

int64_t dmi_dimset_first_position(const dmi_dimset *set)
{
    return set->count > 0 ? below(set, nth(set, 0)) - set->lbase : 0;
}

int64_t dmi_dimset_position(const dmi_dimset *set, int64_t index)
{
    assert(dmi_dimset_contains(set, index));
    return below(set, index + set->origin) - set->lbase;
}

int64_t dmi_dimset_index(const dmi_dimset *set, int64_t k)
{
    assert(k >= 0 && k < set->count);
    return nth(set, k) - set->origin;
}

bool dmi_dimset_contains(const dmi_dimset *set, int64_t index)
{
    int64_t i = index + set->origin;
    return i >= set->lo && i < set->hi && (set->g == 1 || i / set->block % set->g == set->c);
}

/* run_from, with indices as the caller sees them. */
static span visible_run(const dmi_dimset *set, int64_t index)
{
    span run = run_from(set, index + set->origin);
    return (span){run.lo - set->origin, run.hi - set->origin};
}

bool dmi_dimset_same(const dmi_dimset *a, const dmi_dimset *b)
{
    if (a->count != b->count) {
        return false;
    }
    /* The first run may be cut short. The second, unless it is the last, is a whole block, and the gap before
     * it is g - 1 blocks: so sets that agree in both and have equally many indices cannot differ later. */
    int64_t left = a->count, x = a->lo - a->origin, y = b->lo - b->origin;
    for (int k = 0; k < 2 && left > 0; k++) {
        span p = visible_run(a, x), q = visible_run(b, y);
        if (p.lo != q.lo || p.hi != q.hi) {
            return false;
        }
        left -= p.hi - p.lo;
        x = y = p.hi;
    }
    return true;
}

/* The first range of indices >= x that are in both sets. Each step leaps to where the set that lags behind
 * may meet the other again, so runs of one that lie in a gap of the other are not visited one by one. */
static bool next_common(const dmi_dimset *a, const dmi_dimset *b, int64_t x, span *out)
{
    for (;;) {
        span p = visible_run(a, x), q = visible_run(b, x);
        if (p.lo == p.hi || q.lo == q.hi) {
            return false;
        }
        out->lo = DMI_MAX(p.lo, q.lo);
        out->hi = DMI_MIN(p.hi, q.hi);
        if (out->lo < out->hi) {
            return true;
        }
        x = out->lo;
    }
}

/* The bounds within which both sets lie, as the caller sees them. */
static span common_bounds(const dmi_dimset *a, const dmi_dimset *b)
{
    return (span){DMI_MAX(a->lo - a->origin, b->lo - b->origin), DMI_MIN(a->hi - a->origin, b->hi - b->origin)};
}

int64_t dmi_dimset_intersect(const dmi_dimset *a, const dmi_dimset *b, dmi_arena *arena, dmi_run **out)
{
    int64_t start = common_bounds(a, b).lo, n = 0;
    span run;
    *out = NULL;
    if (dmi_dimset_overlap(a, b) == 0) {
        return 0;
    }
    for (int64_t x = start; next_common(a, b, x, &run); x = run.hi) {
        n++;
    }
    dmi_run *runs = dmi_arena_alloc(arena, (size_t)n * sizeof *runs);
    if (!runs) {
        return -1;
    }
    int64_t first_a = below(a, nth(a, 0)), first_b = below(b, nth(b, 0)), k = 0;
    for (int64_t x = start; next_common(a, b, x, &run); x = run.hi) {
        runs[k].index = run.lo;
        runs[k].a = below(a, run.lo + a->origin) - first_a;
        runs[k].b = below(b, run.lo + b->origin) - first_b;
        runs[k].len = run.hi - run.lo;
        k++;
    }
    assert(k == n);
    *out = runs;
    return n;
}

/* Indices of both sets in the visible interval `in`, run by run. */
static int64_t walk_overlap(const dmi_dimset *a, const dmi_dimset *b, span in)
{
    int64_t sum = 0;
    span run;
    for (int64_t x = in.lo; x < in.hi && next_common(a, b, x, &run) && run.lo < in.hi; x = run.hi) {
        sum += DMI_MIN(run.hi, in.hi) - run.lo;
    }
    return sum;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int64_t dmi_dimset_range_within(const dmi_dimset *whole, const dmi_dimset *part)
{
    int64_t first = (part->lo - part->origin) - (whole->lo - whole->origin);
    if (whole->g == 1 && part->g == 1) {
        return first >= 0 && first + part->count <= whole->count ? first : -1;
    }
    bool same = first == 0 && whole->g == part->g && whole->c == part->c && whole->block == part->block &&
                whole->lo == part->lo && whole->count == part->count;
    return same ? 0 : -1;
}

int64_t dmi_dimset_overlap(const dmi_dimset *a, const dmi_dimset *b)
{
    span all = common_bounds(a, b);
    if (all.lo >= all.hi) {
        return 0;
    }
    if (a->g == 1 || b->g == 1) {
        const dmi_dimset *set = a->g == 1 ? b : a;
        return below(set, all.hi + set->origin) - below(set, all.lo + set->origin);
    }
    int64_t period_a = a->block * a->g, period_b = b->block * b->g, period;
    if (!dmi_mul_fits(period_a / gcd(period_a, period_b), period_b, &period) ||
        period > (all.hi - all.lo) / 2) {
        return walk_overlap(a, b, all);
    }
    /* Both sets repeat together: one common period stands for all of them. */
    int64_t times = (all.hi - all.lo) / period;
    int64_t rest = all.lo + times * period;
    return times * walk_overlap(a, b, (span){all.lo, all.lo + period}) +
           walk_overlap(a, b, (span){rest, all.hi});
}
