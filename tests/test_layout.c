/* Layouts against the definition. */
#include "layout_oracle.h"

static int64_t layouts_checked, windows_checked;

/* Walks the region's elements; each must be the holder's, in the place that the definition gives it. `lo` is
 * where the region's coordinates begin in the array. */
static void check_region(const dmi_layout_spec *s, const oracle *o, int holder, const dmi_region *r,
                         const int64_t *lo, char *seen)
{
    int64_t k[DM_MAX_DIMS] = {0}, walked = 0;
    assert_int_equal(r->ndim, s->ndim);
    if (r->count == 0) {
        return;
    }
    for (bool more = true; more; walked++) {
        int64_t index[DM_MAX_DIMS], at = r->offset;
        for (int d = 0; d < s->ndim; d++) {
            int64_t i = dmi_dimset_index(&r->dim[d], k[d]);
            at += dmi_dimset_position(&r->dim[d], i) * r->stride[d];
            index[d] = lo[d] + i;
            assert_true(index[d] >= 0 && index[d] < s->shape[d]);
        }
        int64_t e = element_number(s, index);
        assert_int_equal(o->holder[e], holder);
        assert_int_equal(o->place[e], at);
        assert_false(seen[e]);
        seen[e] = 1;
        more = false;
        for (int d = s->ndim - 1; d >= 0 && !more; d--) {
            more = ++k[d] < r->dim[d].count;
            k[d] = more ? k[d] : 0;
        }
    }
    assert_int_equal(walked, r->count);
}

/* Exactly the holder's elements inside [lo, lo+extent) were seen. */
static void check_seen(const dmi_layout_spec *s, const oracle *o, int holder, const int64_t *lo,
                       const int64_t *extent, const char *seen)
{
    for (int64_t e = 0; e < o->count; e++) {
        int64_t index[DM_MAX_DIMS];
        bool inside = o->holder[e] == holder;
        element_index(s, e, index);
        for (int d = 0; d < s->ndim; d++) {
            inside = inside && index[d] >= lo[d] && index[d] < lo[d] + extent[d];
        }
        assert_int_equal(seen[e], inside);
    }
}

/* `depth` windows one in the other: the same places, under new coordinates. */
static void check_windows(const dmi_layout_spec *s, const dmi_layout *y, const oracle *o, int w, int holder,
                          int depth)
{
    int64_t lo[3][DM_MAX_DIMS], extent[3][DM_MAX_DIMS], base[DM_MAX_DIMS] = {0};
    static char seen[MOST];
    int64_t end[DM_MAX_DIMS] = {0}, next = -1;
    memset(seen, 0, (size_t)o->count);
    for (int k = 0; k < depth; k++) {
        for (int d = 0; d < s->ndim; d++) {
            int64_t room = k == 0 ? s->shape[d] : extent[k - 1][d];
            lo[k][d] = pick(0, room);
            extent[k][d] = pick(0, 3) == 0 ? room - lo[k][d] : pick(0, room - lo[k][d]);
            base[d] += lo[k][d];
            end[d] = base[d] + extent[k][d];
        }
    }
    for (int64_t i = 0; i < dmi_layout_region_count(y, w); i++) {
        dmi_region region, other;
        dmi_layout_region(y, w, i, &region);
        bool some = true;
        for (int k = 0; k < depth; k++) {
            some = dmi_region_clip(&region, lo[k], extent[k], &other);
            assert_int_equal(dmi_region_clip(&region, lo[k], extent[k], &region), some);
            assert_memory_equal(&region, &other, sizeof region);
        }
        assert_int_equal(some, region.count > 0);
        next = depth == 1 && next < i ? dmi_layout_region_next(y, w, lo[0], end, next) : next;
        assert_true(depth > 1 || !some || next == i); /* a search for the window does not miss it */
        check_region(s, o, holder, &region, base, seen);
    }
    check_seen(s, o, holder, base, extent[depth - 1], seen);
    windows_checked++;
}

static void check_worker(const dmi_layout_spec *s, const dmi_layout *y, const oracle *o, int w)
{
    static char seen[MOST];
    static const int64_t zero[DM_MAX_DIMS];
    int replica, holder = holder_of(s, o, w, &replica);
    assert_int_equal(dmi_layout_replica(y, w), replica);
    if (holder < 0) {
        assert_int_equal(dmi_layout_region_count(y, w), 0);
        assert_int_equal(dmi_layout_shard_count(y, w), 0);
        return;
    }
    assert_int_equal(dmi_layout_shard_count(y, w), o->held[holder]);
    memset(seen, 0, (size_t)o->count);
    int64_t regions = dmi_layout_region_count(y, w);
    for (int64_t i = 0; i < regions; i++) {
        dmi_region region;
        dmi_layout_region(y, w, i, &region);
        check_region(s, o, holder, &region, zero, seen);
        for (int d = 0; d < s->ndim; d++) { /* blocks and contiguous dims: no gaps, positions from 0 */
            if (region.dim[d].g == 1 && region.dim[d].count > 0) {
                assert_int_equal(dmi_dimset_first_position(&region.dim[d]), 0);
            }
        }
    }
    if (s->kind == DMI_LAYOUT_GRID) {
        assert_int_equal(regions, 1);
    }
    check_seen(s, o, holder, zero, s->shape, seen);
    check_windows(s, y, o, w, holder, 1);
    check_windows(s, y, o, w, holder, (int)pick(2, 3));
}

static void check_owners(const dmi_layout_spec *s, const dmi_layout *y, const oracle *o)
{
    for (int64_t e = 0; e < o->count; e++) {
        int64_t index[DM_MAX_DIMS];
        element_index(s, e, index);
        for (int r = 0; r < y->replicas; r++) {
            int replica, w = dmi_layout_owner(y, index, r);
            assert_int_equal(holder_of(s, o, w, &replica), o->holder[e]);
            assert_int_equal(replica, r);
        }
    }
}

static void check_layout(const dmi_layout_spec *s)
{
    static oracle o;
    dmi_layout *y = NULL;
    dm_status status = dmi_layout_create(s, &y);
    if (status != DM_OK) {
        fail_msg("%s", dmi_error_text());
    }
    make_oracle(s, &o);
    assert_int_equal(y->count, o.count);
    assert_int_equal(y->blocks, blocks_in_all(s));
    for (int d = 0; d < s->ndim; d++) {
        assert_int_equal(y->block[d], block_of(s, d));
        assert_int_equal(y->nblock[d], div_up(s->shape[d], block_of(s, d)));
    }
    check_owners(s, y, &o);
    for (int w = 0; w < s->session_workers; w++) {
        check_worker(s, y, &o, w);
    }
    layouts_checked++;
    dmi_layout_destroy(y);
}

/* ---- the layouts tried ----------------------------------------------------------------------------------- */

/* All workers as they come, or some of them in a random order, held as often as they allow or less. */
static void choose_workers(dmi_layout_spec *s, int *workers, int group)
{
    s->session_workers = (int)pick(group, SESSION);
    s->replicas = (int)pick(0, s->session_workers / group);
    int used = group * (s->replicas > 0 ? s->replicas : 1);
    for (int w = 0; w < SESSION; w++) {
        workers[w] = w;
    }
    if (pick(0, 2) == 0) {
        s->workers = NULL;
        s->nworkers = pick(0, 1) ? used : 0;
        return;
    }
    for (int i = 0; i < used; i++) {
        int64_t j = pick(i, s->session_workers - 1);
        int swap = workers[i];
        workers[i] = workers[j];
        workers[j] = swap;
    }
    s->workers = workers;
    s->nworkers = used;
}

static void every_small_vector(void **state)
{
    (void)state;
    int workers[SESSION];
    int64_t before = layouts_checked;
    for (int64_t n = 0; n <= 13; n++) {
        for (int64_t block = 0; block <= n + 1; block++) {
            for (int g = 1; g <= SESSION; g++) {
                for (int order = 0; order < 2; order++) {
                    dmi_layout_spec s = {
                        .ndim = 1, .shape = {n}, .block = {block}, .grid = {g}, .order = {order}};
                    choose_workers(&s, workers, g);
                    check_layout(&s);
                }
            }
        }
    }
    print_message("%" PRId64 " layouts\n", layouts_checked - before);
}

/* Long enough for the blocks that a cyclic dim gets by default to be smaller than a worker's share. */
static void long_vectors(void **state)
{
    (void)state;
    static const int64_t extents[] = {63, 64, 65, 128, 129, 193, 1000, 3001};
    int workers[SESSION];
    int64_t before = layouts_checked;
    for (int i = 0; i < DMI_COUNT(extents); i++) {
        for (int64_t block = 0; block < 1100; block = block * 3 + 7) {
            for (int g = 1; g <= SESSION; g++) {
                for (int order = 0; order < 2; order++) {
                    dmi_layout_spec s = {
                        .ndim = 1, .shape = {extents[i]}, .block = {block}, .grid = {g}, .order = {order}};
                    choose_workers(&s, workers, g);
                    check_layout(&s);
                }
            }
        }
    }
    print_message("%" PRId64 " layouts\n", layouts_checked - before);
}

static void small_matrices(void **state)
{
    (void)state;
    static const int64_t extents[] = {0, 1, 2, 5, 7};
    int workers[SESSION];
    int64_t before = layouts_checked;
    for (int i = 0; i < 25 * 25; i++) {
        int64_t shape[2] = {extents[i % 5], extents[i / 5 % 5]};
        int64_t block[2] = {i / 25 % 5, i / 125};
        block[0] = block[0] == 4 ? shape[0] + 1 : block[0];
        block[1] = block[1] == 4 ? shape[1] + 1 : block[1];
        for (int g = 0; g < 64; g++) {
            int rows = g % 8 + 1, cols = g / 8 + 1;
            for (int order = 0; order < 4 && rows * cols <= SESSION; order++) {
                dmi_layout_spec s = {.ndim = 2,
                                     .shape = {shape[0], shape[1]},
                                     .block = {block[0], block[1]},
                                     .grid = {rows, cols},
                                     .order = {order & 1, order >> 1}};
                choose_workers(&s, workers, rows * cols);
                check_layout(&s);
            }
        }
    }
    print_message("%" PRId64 " layouts\n", layouts_checked - before);
}

static void random_shape(dmi_layout_spec *s)
{
    static const int64_t extents[] = {0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 5, 7, 11};
    do {
        s->ndim = (int)pick(0, 4);
        for (int d = 0; d < s->ndim; d++) {
            s->shape[d] = extents[pick(0, DMI_COUNT(extents) - 1)];
            s->block[d] = pick(0, s->shape[d] + 1);
        }
    } while (elements(s) > 700);
}

static void random_grids(void **state)
{
    (void)state;
    int workers[SESSION];
    int64_t before = layouts_checked;
    for (int k = 0; k < 12000; k++) {
        dmi_layout_spec s = {.kind = DMI_LAYOUT_GRID};
        random_shape(&s);
        int group = 1;
        for (int d = 0; d < s.ndim; d++) {
            s.grid[d] = (int)pick(1, SESSION / group);
            s.order[d] = (int)pick(0, 1);
            group *= s.grid[d];
        }
        choose_workers(&s, workers, group);
        check_layout(&s);
    }
    print_message("%" PRId64 " layouts\n", layouts_checked - before);
}

static void random_maps(void **state)
{
    (void)state;
    int workers[SESSION];
    static int map[MOST];
    int64_t before = layouts_checked;
    for (int k = 0; k < 6000; k++) {
        dmi_layout_spec s = {.kind = DMI_LAYOUT_EXPLICIT, .map = map};
        do {
            random_shape(&s);
        } while (blocks_in_all(&s) > 100);
        choose_workers(&s, workers, (int)pick(1, SESSION));
        s.replicas = (int)pick(0, 1);
        s.map_count = blocks_in_all(&s);
        int used = s.nworkers > 0 ? s.nworkers : s.session_workers;
        for (int64_t b = 0; b < s.map_count; b++) {
            map[b] = workers[pick(0, used - 1)];
        }
        check_layout(&s);
    }
    print_message("%" PRId64 " layouts, %" PRId64 " windows in all\n", layouts_checked - before,
                  windows_checked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_vector), cmocka_unit_test(long_vectors), cmocka_unit_test(small_matrices),
        cmocka_unit_test(random_grids),       cmocka_unit_test(random_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
