/* Arrays themselves: creating, asking, owners, views, other shapes, parts to and from the host, lives. */
#include "support/part.h"

#include <stdlib.h>
#include <string.h>

static dmt_host *random_host(dmt_case *c, int most_ndim)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, most_ndim);
    dmt_shape_random(c, ndim, 3000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_WILD);
    return h;
}

static dm_array_info query(dmt_case *c, dm_array a)
{
    dm_array_info info = {.size = sizeof info};
    DMT_OK(c, dm_array_query(c->session, a, &info));
    return info;
}

static void check_shape(dmt_case *c, const dm_array_info *info, dm_dtype dtype, int ndim, const int64_t *shape,
                        bool view)
{
    bool right = info->dtype == dtype && info->ndim == ndim && !info->is_view == !view;
    for (int d = 0; d < ndim && right; d++) {
        right = info->shape[d] == shape[d];
    }
    if (!right) {
        char text[160], want[160];
        dmt_fail(c, "asked about %s %s%s, told %s %s%s", dmt_name(dtype), dmt_shape_text(ndim, shape, want),
                 view ? " view" : "", dmt_name(info->dtype), dmt_shape_text(info->ndim, info->shape, text),
                 info->is_view ? " view" : "");
    }
}

/* The worker of an element, from the layout asked for and the block sizes answered. */
static int owner_of(const dm_layout *layout, const dm_array_info *info, const int64_t *shape,
                    const int64_t *index)
{
    int64_t at = 0;
    if (layout && layout->kind == 2) {
        return layout->single;
    }
    for (int d = 0; d < info->ndim; d++) {
        int64_t block = info->block[d], blocks = (shape[d] + block - 1) / block, b = index[d] / block;
        int grid = info->grid[d];
        if (layout && layout->kind == 1) {
            at = at * blocks + b;
            continue;
        }
        int64_t together = (blocks + grid - 1) / grid;
        bool cyclic = layout && layout->kind == 0 && layout->order[d] == DM_CYCLIC;
        at = at * grid + (cyclic ? b % grid : b / together);
    }
    if (layout && layout->kind == 1) {
        return layout->map[at];
    }
    return layout && layout->workers ? layout->workers[at] : (int)at;
}

static void check_layout(dmt_case *c, const dmt_layout *l, const dm_array_info *info)
{
    if (!l->use || l->use->kind != 0) {
        return;
    }
    for (int d = 0; d < info->ndim; d++) {
        int64_t block = l->layout.block[d];
        int grid = l->layout.grid[d] ? l->layout.grid[d] : 1;
        if (info->grid[d] != grid || (block && info->block[d] != block) || info->block[d] < 1) {
            dmt_fail(c, "dim %d: grid %d block %d", d, info->grid[d], (int)info->block[d]);
        }
    }
    if (info->replicas != (l->layout.replicas ? l->layout.replicas : 1)) {
        dmt_fail(c, "%d replicas", info->replicas);
    }
}

static void create_case(dmt_case *c)
{
    dmt_host *h = random_host(c, dmt_chance(&c->random, 15) ? DM_MAX_DIMS : 3);
    dmt_operand *a = dmt_operand_make(c, "a", h, DMT_NO_VIEW);
    dm_array_info info = query(c, a->array);
    check_shape(c, &info, h->dtype, h->ndim, h->shape, false);
    check_layout(c, &a->layout, &info);
    for (int tries = 0; tries < 20 && h->count > 0; tries++) {
        int64_t index[DM_MAX_DIMS], at = dmt_int(&c->random, 0, h->count - 1);
        int worker = -1;
        dmt_unlinear(h->ndim, h->shape, at, index);
        DMT_OK(c, dm_array_owner(c->session, a->array, index, &worker));
        int want = owner_of(a->layout.use, &info, h->shape, index);
        if (worker != want) {
            dmt_fail(c, "element %d is with worker %d, not %d", (int)at, want, worker);
        }
    }
    dmt_operand_unchanged(c, a);
}

/* The layout dmath chooses: dim 0 split over all workers, or all of a small array on worker 0. */
static void default_case(dmt_case *c)
{
    int64_t shape[3], bytes = 4, last[3];
    int owner = -1;
    dm_array a;
    dm_layout layout = dm_layout_default();
    for (int d = 0; d < 3; d++) {
        shape[d] = dmt_int(&c->random, 1, 24);
        last[d] = shape[d] - 1;
        bytes *= shape[d];
    }
    bool spread = c->workers > 1 && bytes >= 4096;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 3, shape, dmt_chance(&c->random, 50) ? NULL : &layout, &a));
    dm_array_info info = query(c, a);
    DMT_OK(c, dm_array_owner(c->session, a, last, &owner));
    if (info.grid[0] != (spread ? c->workers : 1) || info.grid[1] != 1 || info.grid[2] != 1 ||
        info.replicas != 1) {
        dmt_fail(c, "%d x %d x %d is on %d x %d x %d, %d replicas", (int)shape[0], (int)shape[1], (int)shape[2],
                 info.grid[0], info.grid[1], info.grid[2], info.replicas);
    }
    int64_t block = (shape[0] + c->workers - 1) / c->workers;
    if (owner != (spread ? last[0] / block : 0)) {
        dmt_fail(c, "the last element is on worker %d", owner);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_matrix(c->session, DM_I32, shape[0], shape[1], &a));
    info = query(c, a);
    check_shape(c, &info, DM_I32, 2, shape, false);
    DMT_OK(c, dm_array_destroy(c->session, a));
}

/* Views of views of views: each shows the same elements as its base does, and its owners are the base's. */
static void view_case(dmt_case *c)
{
    char text[400];
    dmt_host *h = random_host(c, 3);
    dmt_operand *a = dmt_operand_make(c, "a", h, DMT_NO_VIEW);
    dm_array view[4] = {a->array};
    dmt_host *value = h;
    int64_t origin[DM_MAX_DIMS] = {0};
    for (int level = 1; level < 4; level++) {
        dmt_part p = dmt_part_random(c, value);
        dmt_part_say(c, "view", &p);
        DMT_OK(c, dm_array_view(c->session, view[level - 1], p.lo, p.extent, &view[level]));
        dmt_host_take(value, p.lo, p.value);
        value = p.value;
        dm_array_info info = query(c, view[level]);
        check_shape(c, &info, h->dtype, h->ndim, value->shape, true);
        dmt_host *got = dmt_read(c, view[level], h->dtype, h->ndim, value->shape);
        if (!dmt_host_same(got, value, text, sizeof text)) {
            dmt_fail(c, "view %d: %s", level, text);
        }
        int64_t zero[DM_MAX_DIMS] = {0};
        int worker = -1, want = -2;
        for (int d = 0; d < h->ndim; d++) {
            origin[d] += p.lo[d];
        }
        if (value->count > 0) {
            DMT_OK(c, dm_array_owner(c->session, view[level], zero, &worker));
            DMT_OK(c, dm_array_owner(c->session, a->array, origin, &want));
            if (worker != want) {
                dmt_fail(c, "view %d: worker %d, by the base %d", level, worker, want);
            }
        }
    }
    for (int level = 3; level > 0; level--) {
        DMT_OK(c, dm_array_destroy(c->session, view[level]));
    }
}

static dmt_host *under_shape(dmt_case *c, const dmt_host *h, int ndim, const int64_t *shape)
{
    dmt_host *other = dmt_host_make(&c->scratch, h->dtype, ndim, shape);
    memcpy(other->v, h->v, (size_t)h->count * sizeof *h->v);
    return other;
}

/* Rows split along dim 0 in blocks of whole new rows: promised to work without moving anything. */
static void reshape_case(dmt_case *c)
{
    int64_t rows = dmt_int(&c->random, 1, 12), each = dmt_int(&c->random, 1, 4),
            cols = dmt_int(&c->random, 1, 9);
    const int64_t before[] = {rows * each, cols}, after[] = {rows, each, cols}, flat[] = {rows * each * cols};
    char text[400];
    dm_layout layout = dm_layout_cyclic(c->session, 0, each * dmt_int(&c->random, 1, 3));
    if (dmt_chance(&c->random, 50)) {
        layout.order[0] = DM_CONTIGUOUS;
    }
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), 2, before);
    dmt_host_random(h, &c->random, DMT_WILD);
    dmt_operand *a = dmt_operand_plain(c, "a", h, &layout, "blocks of whole new rows");
    dm_array cube, line;
    DMT_OK(c, dm_array_reshape(c->session, a->array, 3, after, &cube));
    DMT_OK(c, dm_array_reshape(c->session, a->array, 1, flat, &line));
    dm_array_info info = query(c, cube);
    check_shape(c, &info, h->dtype, 3, after, true);
    dmt_host *got = dmt_read(c, cube, h->dtype, 3, after), *straight = dmt_read(c, line, h->dtype, 1, flat);
    if (!dmt_host_same(got, under_shape(c, h, 3, after), text, sizeof text)) {
        dmt_fail(c, "reshaped to three dims: %s", text);
    }
    if (!dmt_host_same(straight, under_shape(c, h, 1, flat), text, sizeof text)) {
        dmt_fail(c, "reshaped to one dim: %s", text);
    }
    DMT_OK(c, dm_fill(c->session, line, 1));
    dmt_host_set(h, 1);
    dmt_operand_check_same(c, a, h);
    DMT_OK(c, dm_array_destroy(c->session, cube));
    DMT_OK(c, dm_array_destroy(c->session, line));
}

/* Consecutive elements of an array that is not split, as rows: views of other shapes that are apart are written
 * one by the other, those that meet are not. */
static void rows_case(dmt_case *c)
{
    const int64_t row = dmt_int(&c->random, 1, 9), other = dmt_int(&c->random, 1, 9), each = row * other;
    const int64_t part = each * dmt_int(&c->random, 1, 3), gap = each * dmt_int(&c->random, 0, 2);
    const int64_t total = 2 * part + 2 * gap + dmt_int(&c->random, 0, 20);
    const int64_t rows[] = {part / row, row}, others[] = {1, part / other, other}, at[] = {gap, 2 * gap + part};
    const bool swaps = dmt_chance(&c->random, 50);
    const int64_t first = at[swaps], second = at[!swaps];
    char text[400];
    dm_layout layout = dmt_chance(&c->random, 60)
                           ? dm_layout_replicated(c->session)
                           : dm_layout_single((int)dmt_int(&c->random, 0, c->workers - 1));
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), 1, &total);
    dmt_host_random(h, &c->random, DMT_WILD);
    dmt_operand *a = dmt_operand_plain(c, "a", h, &layout, "not split");
    dm_array from, to, x, y, third, meets;
    DMT_OK(c, dm_array_view(c->session, a->array, &first, &part, &from));
    DMT_OK(c, dm_array_view(c->session, a->array, &second, &part, &to));
    DMT_OK(c, dm_array_reshape(c->session, from, 2, rows, &x));
    DMT_OK(c, dm_array_reshape(c->session, to, 3, others, &y));
    dm_array_info info = query(c, y);
    check_shape(c, &info, h->dtype, 3, others, true);
    dmt_host *got = dmt_read(c, x, h->dtype, 2, rows), *want = dmt_host_make(&c->scratch, h->dtype, 1, &part);
    dmt_host_take(h, &first, want);
    if (!dmt_host_same(got, under_shape(c, want, 2, rows), text, sizeof text)) {
        dmt_fail(c, "elements %lld on, as rows: %s", (long long)first, text);
    }
    dm_array flat;
    DMT_OK(c, dm_array_reshape(c->session, y, 1, &part, &flat));
    DMT_OK(c, dm_copy(c->session, from, flat));
    dmt_host_put(h, &second, want);
    dmt_operand_check_same(c, a, h);
    dm_array last = DM_NO_ARRAY; /* of a view of a view, the last row */
    DMT_OK(c, dm_array_view(c->session, x, (int64_t[]){rows[0] - 1, 0}, (int64_t[]){1, row}, &last));
    DMT_OK(c, dm_fill(c->session, last, 1));
    for (int64_t i = 0; i < row; i++) {
        h->v[first + part - row + i] = 1;
    }
    dmt_operand_check_same(c, a, h);
    const int64_t begin = dmt_int(&c->random, 0, (total - part) / other) * other,
                  distance = llabs(begin - second);
    DMT_OK(c, dm_array_view(c->session, a->array, &begin, &part, &third));
    DMT_OK(c, dm_array_reshape(c->session, third, 2, others + 1, &meets));
    dm_status status = dm_copy(c->session, meets, y);
    if (status != (distance < part ? DM_ERR_OVERLAP : DM_OK)) {
        dmt_fail(c, "a copy of %lld elements %lld apart: status %d", (long long)part, (long long)distance,
                 (int)status);
    }
    if (status == DM_OK) { /* columns of parts that are apart are apart too; the same elements under two shapes
                              are the same */
        dm_array columns[2], again;
        const int64_t top[] = {0, 0}, one[] = {part / other, 1};
        DMT_OK(c, dm_array_view(c->session, meets, top, one, &columns[0]));
        DMT_OK(c, dm_array_view(c->session, y, (int64_t[]){0, 0, other - 1}, (int64_t[]){1, part / other, 1},
                                &columns[1]));
        DMT_OK(c, dm_copy(c->session, columns[0], columns[1]));
        DMT_OK(c, dm_array_reshape(c->session, x, 1, &part, &again));
        DMT_OK(c, dm_add(c->session, 1, from, 1, again, again));
        DMT_OK(c, dm_array_destroy(c->session, columns[0]));
        DMT_OK(c, dm_array_destroy(c->session, columns[1]));
        DMT_OK(c, dm_array_destroy(c->session, again));
    }
    dm_array all[] = {from, to, x, y, flat, last, third, meets};
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        DMT_OK(c, dm_array_destroy(c->session, all[i]));
    }
}

static void test_create(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "array_create", .cases = 2000, .fn = create_case});
}

static void test_default(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "array_default", .cases = 600, .fn = default_case});
}

static void test_view(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "array_view", .cases = 1200, .fn = view_case});
}

static void test_reshape(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "array_reshape", .cases = 800, .fn = reshape_case});
}

static void test_rows(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "array_rows", .cases = 800, .fn = rows_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows), cmocka_unit_test(test_create),  cmocka_unit_test(test_default),
        cmocka_unit_test(test_view), cmocka_unit_test(test_reshape),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
