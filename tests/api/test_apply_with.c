/* dm_apply on arrays whose blocks differ: refused, or brought together; and functions that say why they fail.
 */
#include "support/refusal.h"

#include <stdlib.h>
#include <string.h>

static double *at(const dm_block *b, int64_t i, int64_t j)
{
    return (double *)b->data + i * b->stride[0] + j * b->stride[1];
}

/* c = 2 a + b - 3 c, walking the blocks of all three together; b is left as it is */
static int combine(const dm_task *t)
{
    for (int64_t k = 0; k < t->blocks[0]; k++) {
        const dm_block *a = &t->block[0][k], *b = &t->block[1][k], *c = &t->block[2][k];
        for (int d = 0; d < 2; d++) {
            if (a->start[d] != b->start[d] || a->extent[d] != b->extent[d] || a->start[d] != c->start[d] ||
                a->extent[d] != c->extent[d]) {
                return dm_task_fail(t, "block %d of worker %d: dim %d differs", (int)k, t->worker, d);
            }
        }
        for (int64_t i = 0; i < a->extent[0]; i++) {
            for (int64_t j = 0; j < a->extent[1]; j++) {
                *at(c, i, j) = 2 * *at(a, i, j) + *at(b, i, j) - 3 * *at(c, i, j);
            }
        }
    }
    return t->blocks[0] == t->blocks[1] && t->blocks[0] == t->blocks[2]
               ? 0
               : dm_task_fail(t, "%d blocks and %d", (int)t->blocks[0], (int)t->blocks[1]);
}

/* Each row becomes its sum; args: the columns that a row must have. */
static int sum_rows(const dm_task *t)
{
    int64_t cols;
    memcpy(&cols, t->args, sizeof cols);
    for (int64_t k = 0; k < t->blocks[0]; k++) {
        const dm_block *x = &t->block[0][k];
        if (x->start[1] != 0 || x->extent[1] != cols) {
            return dm_task_fail(t, "columns %d to %d", (int)x->start[1], (int)(x->start[1] + x->extent[1]));
        }
        for (int64_t i = 0; i < x->extent[0]; i++) {
            double sum = 0;
            for (int64_t j = 0; j < cols; j++) {
                sum += *at(x, i, j);
            }
            for (int64_t j = 0; j < cols; j++) {
                *at(x, i, j) = sum;
            }
        }
    }
    return 0;
}

static int complain(const dm_task *t)
{
    if (t->worker == 1) {
        (void)dm_task_fail(t, "no %s on worker %d", "milk", t->worker);
        (void)dm_task_fail(t, "a second reason");
    }
    return 0; /* failed all the same */
}

static dmt_operand *random_matrix(dmt_case *c, const char *name, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(&c->scratch, DM_F64, 2, shape);
    dmt_host_random(h, &c->random, DMT_SMALL);
    return dmt_operand_make(c, name, h, 0);
}

static void align_case(dmt_case *c)
{
    static const int modes[] = {DM_READ, DM_READ, DM_READWRITE};
    int64_t shape[2];
    dmt_shape_random(c, 2, 2000, shape);
    dmt_operand *a = random_matrix(c, "a", shape), *b = random_matrix(c, "b", shape),
                *x = random_matrix(c, "x", shape);
    dm_apply_options options = DM_APPLY_OPTIONS_INIT;
    options.align = 1;
    options.whole_rows = dmt_chance(&c->random, 50);
    dmt_host *want = dmt_host_copy(&c->scratch, x->value);
    for (int64_t i = 0; i < want->count; i++) {
        want->v[i] = 2 * a->value->v[i] + b->value->v[i] - 3 * x->value->v[i];
    }
    dm_array arrays[] = {a->array, b->array, x->array};
    DMT_OK(c, dm_apply_with(c->session, "combine", 3, arrays, modes, NULL, 0, &options));
    DMT_OK(c, dm_sync(c->session));
    dmt_operand_check_same(c, x, want);
    dmt_operand_unchanged(c, a);
    dmt_operand_unchanged(c, b);
    dm_status status = dm_apply(c->session, "combine", 3, arrays, modes, NULL, 0);
    if (status == DM_OK) { /* then the blocks are alike, or the function would complain */
        DMT_OK(c, dm_sync(c->session));
    } else if (status != DM_ERR_LAYOUT || !strstr(dm_error_message(), "arrays[")) {
        dmt_fail(c, "dm_apply: %s: %s", dm_status_name(status), dm_error_message());
    }
}

static void rows_case(dmt_case *c)
{
    static const int mode = DM_READWRITE;
    int64_t shape[2];
    dmt_shape_random(c, 2, 2000, shape);
    dmt_operand *x = random_matrix(c, "x", shape);
    dm_apply_options options = DM_APPLY_OPTIONS_INIT;
    options.whole_rows = 1;
    dmt_host *want = dmt_host_copy(&c->scratch, x->value);
    for (int64_t i = 0; i < shape[0]; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < shape[1]; j++) {
            sum += x->value->v[i * shape[1] + j];
        }
        for (int64_t j = 0; j < shape[1]; j++) {
            want->v[i * shape[1] + j] = sum;
        }
    }
    DMT_OK(c, dm_apply_with(c->session, "sum_rows", 1, &x->array, &mode, &shape[1], sizeof shape[1], &options));
    DMT_OK(c, dm_sync(c->session));
    dmt_operand_check_same(c, x, want);
}

static void errors_case(dmt_case *c)
{
    dm_session *s = c->session;
    const int64_t shape[] = {6, 6};
    const int modes[] = {DM_READ, DM_READ, DM_READWRITE}, write[] = {DM_READWRITE, DM_READ};
    dm_layout cols = dm_layout_cols(s), rows = dm_layout_rows(s);
    dm_apply_options options = DM_APPLY_OPTIONS_INIT, bad = {.size = 3};
    dm_array a, b, d, part;
    dmt_things t = dmt_things_make(c);
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &a));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &b));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &cols, &d));
    DMT_OK(c, dm_fill(s, a, 1));
    DMT_OK(c, dm_fill(s, b, 2));
    DMT_OK(c, dm_fill(s, d, 3));
    REFUSED(DMT_ONE(LAYOUT), "align", dm_apply(s, "combine", 3, (dm_array[]){a, b, d}, modes, NULL, 0));
    REFUSED(DMT_ONE(LAYOUT), "2", dm_apply(s, "combine", 3, (dm_array[]){a, b, d}, modes, NULL, 0));
    REFUSED(DMT_ONE(LAYOUT), "apply_with",
            dm_apply_with(s, "combine", 3, (dm_array[]){a, b, d}, modes, NULL, 0, &options));
    REFUSED(DMT_ONE(ARG), "options",
            dm_apply_with(s, "combine", 3, (dm_array[]){a, b, d}, modes, NULL, 0, &bad));
    options.align = 1;
    REFUSED(DMT_ONE(ARG), "name",
            dm_apply_with(s, "nobody", 3, (dm_array[]){a, b, d}, modes, NULL, 0, &options));
    REFUSED(DMT_ONE(HANDLE), "arrays",
            dm_apply_with(s, "combine", 2, (dm_array[]){a, {0}}, modes, NULL, 0, &options));
    DMT_OK(c, dm_rows(s, d, 0, 3, &part)); /* shares memory with d, though its temporary would not */
    REFUSED(DMT_ONE(OVERLAP), NULL,
            dm_apply_with(s, "combine", 2, (dm_array[]){d, part}, write, NULL, 0, &options));
    /* a function that fails on temporaries: what was to be written is poisoned */
    double got[36];
    DMT_OK(c, dm_apply_with(s, "complain", 2, (dm_array[]){a, d}, (int[]){DM_READ, DM_READWRITE}, NULL, 0,
                            &options));
    REFUSED(DMT_ONE(TASK), "milk", dm_sync(s));
    assert_null(strstr(dm_error_message(), "second"));
    REFUSED(DMT_ONE(POISONED), NULL, dm_read(s, d, got));
    DMT_OK(c, dm_read(s, a, got));
    dm_array all[] = {a, b, d, part};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(s, all[i]));
    }
    dmt_things_end(c, &t);
}

static void test_align(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "align", .cases = 400, .fn = align_case});
}

static void test_align_emulated(void **state)
{
    (void)state;
#ifdef DMATH_WITH_CUDA
    skip();
#endif
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    dmt_run(&(dmt_suite){
        .name = "align_emulated", .cases = 40, .fn = align_case, .workers = 2, .options = "device=emulated"});
}

static void test_whole_rows(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "whole_rows", .cases = 300, .fn = rows_case});
}

DMT_ONE_CASE(errors_case)

int main(void)
{
    if (dm_register("combine", combine) != DM_OK || dm_register("sum_rows", sum_rows) != DM_OK ||
        dm_register("complain", complain) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_align),
        cmocka_unit_test(test_align_emulated),
        cmocka_unit_test(test_whole_rows),
        cmocka_unit_test(test_errors_case),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
