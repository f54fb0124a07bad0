/* Elements of 16 bytes by their indices: taken, put and added, against loops. The smaller ones are in
 * ops/test_take.c and ops/test_put.c. */
#include "robust/robust.h"

#include <dmath/index.h>

enum { ROWS = 7, COLS = 5, PICKS = 6 };
typedef struct pair {
    double re, im;
} pair;

static const int64_t picked[PICKS] = {3, 0, 6, 3, 1, 6}; /* twice the same: added twice */

static pair at(int seed, int i)
{
    return (pair){(i * 7 + seed) % 11 - 5, (i * 3 + seed) % 5};
}

static dm_array make(dm_session *s, const dm_layout *layout, int seed, int64_t rows, pair *values)
{
    dm_array x;
    for (int i = 0; i < rows * COLS; i++) {
        values[i] = at(seed, i);
    }
    OK(dm_array_create(s, DM_C128, 2, (const int64_t[]){rows, COLS}, layout, &x));
    OK(dm_array_write(s, x, NULL, NULL, values, 0));
    return x;
}

static void is(dm_session *s, dm_array x, const pair *want, int count)
{
    pair got[ROWS * COLS];
    OK(dm_array_read(s, x, NULL, NULL, got, 0));
    for (int i = 0; i < count; i++) {
        if (got[i].re != want[i].re || got[i].im != want[i].im) {
            fail_msg("element %d is %g %g, not %g %g", i, got[i].re, got[i].im, want[i].re, want[i].im);
        }
    }
}

static void with_layouts(dm_session *s, const dm_layout *of_x, const dm_layout *of_part)
{
    pair x[ROWS * COLS], part[ROWS * COLS], sum[ROWS * COLS];
    dm_array all = make(s, of_x, 1, ROWS, x), some = make(s, of_part, 2, PICKS, part), index, along;
    OK(dm_array_create(s, DM_I64, 1, (const int64_t[]){PICKS}, NULL, &index));
    OK(dm_array_write(s, index, NULL, NULL, picked, 0));
    OK(dm_array_reshape(s, index, 2, (const int64_t[]){PICKS, 1}, &along));
    for (int turn = 0; turn < 2; turn++) { /* by a vector, and by a column that goes along the rows */
        memcpy(sum, x, sizeof sum);
        for (int i = 0; i < PICKS * COLS; i++) {
            pair *to = &sum[picked[i / COLS] * COLS + i % COLS];
            *to = (pair){to->re + part[i].re, to->im + part[i].im};
        }
        OK(turn ? dm_scatter_add_along_dim(s, all, along, some, 0, DM_RAISE)
                : dm_scatter_add(s, all, index, some, 0, DM_RAISE));
        is(s, all, sum, ROWS * COLS);
        memcpy(x, sum, sizeof x);
        OK(turn ? dm_take_along_dim(s, all, along, 0, DM_WRAP, some)
                : dm_take(s, all, index, 0, DM_WRAP, some));
        for (int i = 0; i < PICKS * COLS; i++) {
            part[i] = x[picked[i / COLS] * COLS + i % COLS];
        }
        is(s, some, part, PICKS * COLS);
        OK(dm_fill(s, some, 9 + turn));
        OK(turn ? dm_put_along_dim(s, all, along, some, 0, DM_CLIP) : dm_put(s, all, index, some, 0, DM_CLIP));
        for (int i = 0; i < PICKS * COLS; i++) {
            part[i] = x[picked[i / COLS] * COLS + i % COLS] = (pair){9 + turn, 0};
        }
        is(s, all, x, ROWS * COLS);
    }
    const dm_array arrays[] = {all, some, along, index};
    for (int i = 0; i < 4; i++) {
        OK(dm_array_destroy(s, arrays[i]));
    }
}

static void test_indices(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 3; workers++) {
        dm_session *s = open_session(workers, "log=error");
        const dm_layout layouts[] = {dm_layout_rows(s), dm_layout_cols(s), dm_layout_cyclic(s, 0, 2),
                                     dm_layout_replicated(s)};
        for (int i = 0; i < 16; i++) {
            with_layouts(s, &layouts[i / 4], &layouts[i % 4]);
        }
        close_session(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_indices, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
