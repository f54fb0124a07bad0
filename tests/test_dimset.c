/* Index sets of one dim against sets spelled out index by index. */
#include "layout/layout.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NEAR = -4, FAR = 40, VISIBLE = FAR - NEAR, MAX_SETS = 6000 };

/* What a set ought to be: for each visible index NEAR .. FAR-1 whether it belongs, and its memory position. */
typedef struct plain {
    bool in[VISIBLE];
    int64_t position[VISIBLE];
} plain;

typedef struct pair {
    dmi_dimset set;
    plain want;
} pair;

static pair sets[MAX_SETS];
static int nsets;

static bool in_plain(const plain *p, int64_t index)
{
    return index >= NEAR && index < FAR && p->in[index - NEAR];
}

/* The endless-loop version of "blocks c, c+g, ... of the dim, packed". */
static plain plain_cyclic(int64_t n, int64_t block, int g, int c)
{
    plain p = {0};
    int64_t place = 0;
    int turn = 0;
    for (int64_t start = 0; start < n; start += block, turn = (turn + 1) % g) {
        for (int64_t i = start; i < start + block && i < n; i++) {
            if (turn == c) {
                p.in[i - NEAR] = true;
                p.position[i - NEAR] = place++;
            }
        }
    }
    return p;
}

static plain plain_window(const plain *p, int64_t lo, int64_t extent)
{
    plain out = {0};
    for (int64_t i = 0; i < extent && i < FAR; i++) {
        if (in_plain(p, lo + i)) {
            out.in[i - NEAR] = true;
            out.position[i - NEAR] = p->position[lo + i - NEAR];
        }
    }
    return out;
}

static void add(const dmi_dimset *set, const plain *want)
{
    assert_true(nsets < MAX_SETS);
    sets[nsets].set = *set;
    sets[nsets++].want = *want;
}

/* The set, windows of it, and windows of some windows. */
static void add_windows(const dmi_dimset *set, const plain *want, int64_t n, int depth)
{
    static const int64_t cuts[][2] = {{0, 99}, {1, 99}, {2, 5}, {3, 3}, {5, 1}, {-2, 8}, {4, 0}, {0, 7}};
    add(set, want);
    for (int k = 0; k < DMI_COUNT(cuts) && depth > 0; k++) {
        if (cuts[k][0] > n || (depth == 1 && k > 3)) {
            continue;
        }
        dmi_dimset cut;
        dmi_dimset_clip(set, cuts[k][0], cuts[k][1], &cut);
        plain plain_cut = plain_window(want, cuts[k][0], cuts[k][1]);
        add_windows(&cut, &plain_cut, n - cuts[k][0], depth - 1);
    }
}

/* As described, not tightened: a cyclic set with its bounds on the whole dim. */
static dmi_dimset raw_cyclic(int64_t n, int64_t block, int g, int c, const plain *want)
{
    dmi_dimset set = {.lo = 0, .hi = n, .block = block, .g = g, .c = c};
    for (int64_t i = 0; i < n; i++) {
        set.count += in_plain(want, i);
    }
    return set;
}

static int make_sets(void **state)
{
    (void)state;
    static const int64_t extents[] = {0, 1, 2, 5, 7, 13};
    static const int64_t blocks[] = {1, 2, 3, 5, 14};
    nsets = 0;
    for (int e = 0; e < DMI_COUNT(extents); e++) {
        int64_t n = extents[e];
        for (int b = 0; b < DMI_COUNT(blocks); b++) {
            for (int g = 1; g <= 4; g++) {
                for (int c = 0; c < g; c++) {
                    int depth = n == 13 && b < 3 && c == g / 2 ? 2 : n >= 7 && c == 0 ? 1 : 0;
                    plain want = plain_cyclic(n, blocks[b], g, c);
                    dmi_dimset raw = raw_cyclic(n, blocks[b], g, c, &want);
                    add_windows(&raw, &want, n, depth);
                }
            }
        }
        for (int64_t lo = 0; lo < 4; lo++) {
            plain want = {0};
            for (int64_t i = 0; i < n; i++) {
                want.in[lo + i - NEAR] = true;
                want.position[lo + i - NEAR] = i;
            }
            dmi_dimset interval = dmi_dimset_interval(lo, n);
            add(&interval, &want);
        }
    }
    return 0;
}

static void each_set_is_as_spelled_out(void **state)
{
    (void)state;
    for (int s = 0; s < nsets; s++) {
        const dmi_dimset *set = &sets[s].set;
        const plain *want = &sets[s].want;
        int64_t k = 0;
        for (int64_t i = NEAR; i < FAR; i++) {
            assert_int_equal(dmi_dimset_contains(set, i), in_plain(want, i));
            if (!in_plain(want, i)) {
                continue;
            }
            assert_int_equal(dmi_dimset_position(set, i), want->position[i - NEAR]);
            if (k == 0) {
                assert_int_equal(dmi_dimset_first_position(set), want->position[i - NEAR]);
            }
            assert_true(k < set->count);
            assert_int_equal(dmi_dimset_index(set, k), i);
            assert_int_equal(dmi_dimset_position(set, i), dmi_dimset_first_position(set) + k);
            k++;
        }
        assert_int_equal(set->count, k);
    }
    print_message("%d sets\n", nsets);
}

/* What a window leaves is in its simplest form: bounds that belong to the set, g > 1 only with gaps. */
static void windows_are_tight(void **state)
{
    (void)state;
    int cyclic = 0;
    for (int s = 0; s < nsets; s++) {
        dmi_dimset set;
        dmi_dimset_clip(&sets[s].set, 0, 20, &set);
        assert_true(set.lo <= set.hi);
        assert_int_equal(set.count == 0, set.lo == set.hi);
        if (set.count > 0) {
            assert_true(dmi_dimset_contains(&set, set.lo - set.origin));
            assert_true(dmi_dimset_contains(&set, set.hi - 1 - set.origin));
        }
        assert_int_equal(set.g == 1, set.hi - set.lo == set.count);
        cyclic += set.g > 1;
    }
    assert_true(cyclic > nsets / 20);
}

static int64_t spell_runs(const plain *a, const plain *b, dmi_run *runs, int64_t *common)
{
    int64_t n = 0, ka = 0, kb = 0;
    bool open = false;
    *common = 0;
    for (int i = 0; i < VISIBLE; i++) {
        bool both = a->in[i] && b->in[i];
        if (both && !open) {
            runs[n++] = (dmi_run){.index = i + NEAR, .a = ka, .b = kb, .len = 0};
        }
        if (both) {
            runs[n - 1].len++;
            ++*common;
        }
        open = both;
        ka += a->in[i];
        kb += b->in[i];
    }
    return n;
}

static void check_pair(const pair *p, const pair *q, dmi_arena *arena)
{
    dmi_run want[VISIBLE], *runs = NULL;
    int64_t common, n = spell_runs(&p->want, &q->want, want, &common);
    assert_int_equal(dmi_dimset_overlap(&p->set, &q->set), common);
    assert_int_equal(dmi_dimset_intersect(&p->set, &q->set, arena, &runs), n);
    if (n > 0) {
        assert_memory_equal(runs, want, (size_t)n * sizeof *runs);
    }
    bool same = memcmp(p->want.in, q->want.in, sizeof p->want.in) == 0;
    assert_int_equal(dmi_dimset_same(&p->set, &q->set), same);
}

static void every_pair_meets_as_spelled_out(void **state)
{
    (void)state;
    int64_t pairs = 0;
    for (int p = 0; p < nsets; p++) {
        dmi_arena arena = {0};
        for (int q = 0; q < nsets; q++) {
            check_pair(&sets[p], &sets[q], &arena);
            pairs++;
        }
        dmi_arena_free(&arena);
    }
    print_message("%" PRId64 " pairs of sets\n", pairs);
}

/* Long enough for whole common periods, which overlap counts only once. */
static void long_sets_overlap_as_their_runs(void **state)
{
    (void)state;
    uint64_t r = 1;
    int64_t tried = 0, several = 0;
    for (int k = 0; k < 20000; k++) {
        dmi_dimset set[2];
        for (int s = 0; s < 2; s++) {
            uint64_t v[6];
            for (int i = 0; i < 6; i++) {
                r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
                v[i] = r >> 33;
            }
            int32_t g = (int32_t)(v[0] % 5 + 1);
            dmi_dimset all = {
                .lo = 0, .hi = (int64_t)(300 + v[1] % 200), .block = (int64_t)(v[2] % 6 + 1), .g = g};
            all.c = (int32_t)(v[3] % (uint64_t)g);
            dmi_dimset_clip(&all, (int64_t)(v[4] % 50), (int64_t)(v[5] % 450), &set[s]);
        }
        int64_t common = 0, of_runs = 0;
        for (int64_t i = 0; i < 500; i++) {
            common += dmi_dimset_contains(&set[0], i) && dmi_dimset_contains(&set[1], i);
        }
        dmi_arena arena = {0};
        dmi_run *runs;
        int64_t n = dmi_dimset_intersect(&set[0], &set[1], &arena, &runs);
        for (int64_t i = 0; i < n; i++) {
            of_runs += runs[i].len;
        }
        dmi_arena_free(&arena);
        assert_int_equal(dmi_dimset_overlap(&set[0], &set[1]), common);
        assert_int_equal(of_runs, common);
        several += n > 3;
        tried++;
    }
    assert_true(several > tried / 4);
    print_message("%" PRId64 " pairs of long sets\n", tried);
}

/* Extents near the largest that a layout takes: nothing may overflow. */
static void huge_extents(void **state)
{
    (void)state;
    const int64_t n = DMI_LAYOUT_MOST, block = n / 10;
    dmi_dimset set = {.lo = 0, .hi = n, .block = block, .g = 7, .c = 2};
    dmi_dimset_clip(&set, 0, n, &set);
    assert_int_equal(set.g, 7);
    assert_true(set.count == 2 * block);
    assert_true(dmi_dimset_index(&set, block) == 9 * block);
    assert_true(dmi_dimset_position(&set, 9 * block) == block);
    dmi_dimset half, whole = dmi_dimset_interval(0, n);
    dmi_dimset_clip(&whole, n / 2, INT64_MAX, &half);
    assert_true(half.count == n - n / 2);
    assert_true(dmi_dimset_overlap(&set, &whole) == set.count);
    assert_true(dmi_dimset_overlap(&set, &set) == set.count);
    dmi_arena arena = {0};
    dmi_run *runs;
    assert_int_equal(dmi_dimset_intersect(&set, &whole, &arena, &runs), 2);
    assert_true(runs[1].index == 9 * block && runs[1].a == block && runs[1].b == 9 * block);
    dmi_arena_free(&arena);
}

static void long_dims_are_quick(void **state)
{
    (void)state;
    const int64_t n = 1000000;
    dmi_dimset cyclic = {.lo = 0, .hi = n, .block = 1, .g = 7, .c = 3}, other = cyclic, odd = cyclic;
    dmi_dimset_clip(&cyclic, 0, n, &cyclic);
    dmi_dimset half = dmi_dimset_interval(n / 2, n / 2);
    other.g = 8;
    odd.g = 2;
    odd.c = 1;
    dmi_dimset_clip(&other, 0, n, &other);
    dmi_dimset_clip(&odd, 0, n, &odd);
    dmi_arena arena = {0};
    dmi_run *runs;
    int64_t start_ns = dmi_now_ns();
    assert_int_equal(dmi_dimset_intersect(&cyclic, &half, &arena, &runs), 71428);
    assert_int_equal(runs[0].index, 500006);
    assert_int_equal(runs[71427].b, runs[0].b + 7 * 71427);
    int64_t contiguous_ns = dmi_now_ns() - start_ns;
    assert_int_equal(dmi_dimset_intersect(&cyclic, &other, &arena, &runs), 17858);
    assert_int_equal(dmi_dimset_intersect(&cyclic, &odd, &arena, &runs), 71429);
    assert_int_equal(dmi_dimset_overlap(&cyclic, &odd), 71429);
    int64_t all_ns = dmi_now_ns() - start_ns;
    dmi_arena_free(&arena);
    print_message("10^6 indices, cyclic and contiguous: %.2f ms; with two cyclic pairs: %.2f ms\n",
                  (double)contiguous_ns / 1e6, (double)all_ns / 1e6);
    assert_true(all_ns < 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_set_is_as_spelled_out),
        cmocka_unit_test(windows_are_tight),
        cmocka_unit_test(every_pair_meets_as_spelled_out),
        cmocka_unit_test(long_sets_overlap_as_their_runs),
        cmocka_unit_test(huge_extents),
        cmocka_unit_test(long_dims_are_quick),
    };
    return cmocka_run_group_tests(tests, make_sets, NULL);
}
