/* Heat spreads over a plate: an explicit scheme for the heat equation. Neighbours are views of the plate, moved
 * by one row or column. The rows at the edge of a worker's block (its halo) come from the next worker, because
 * the views need them: nothing here says so. Two steps, there and back between two arrays, are a recorded
 * program.
 *
 *   heat [FOLDER [SIDE [STEPS]]]        saves the plate before and after to FOLDER */
#include "common/save.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>

/* A view of the inner elements, moved by (rows, cols). */
static dm_array inner(dm_session *s, dm_array plate, int64_t side, int64_t rows, int64_t cols)
{
    dm_array view;
    const int64_t lo[2] = {1 + rows, 1 + cols}, extent[2] = {side - 2, side - 2};
    DM_CHECK(dm_array_view(s, plate, lo, extent, &view));
    return view;
}

/* Inner elements of `to` from those of `from`; the rim stays as it is. */
static void spread(dm_session *s, dm_array from, int64_t side, dm_array to)
{
    DM_CHECK(dm_scope_begin(s));
    const dm_map_arg args[] = {
        DM_ARG("c", inner(s, from, side, 0, 0)), DM_ARG("n", inner(s, from, side, -1, 0)),
        DM_ARG("s", inner(s, from, side, 1, 0)), DM_ARG("w", inner(s, from, side, 0, -1)),
        DM_ARG("e", inner(s, from, side, 0, 1)), DM_NUMBER("k", 0.2)};
    DM_CHECK(dm_map(s, "c + k * (n + s + w + e - 4 * c)", 6, args, inner(s, to, side, 0, 0)));
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL;
    const int64_t side = argc > 2 ? atoll(argv[2]) : 300, steps = argc > 3 ? atoll(argv[3]) : 200;
    dm_session *s;
    dm_array plate, other, top, total;
    dm_program two;
    double before, after;
    DM_CHECK(dm_init(NULL, &s));
    if (side < 3 || steps < 0 || steps % 2 != 0) {
        fprintf(stderr, "heat: the side is at least 3, and the number of steps even\n");
        exit(EXIT_FAILURE);
    }
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, side, side, &plate));
    DM_CHECK(dm_matrix(s, DM_F64, side, side, &other));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &total));
    DM_CHECK(dm_fill_uniform(s, plate, 0, 1, 7));
    DM_CHECK(dm_rows(s, plate, 0, 1, &top));
    DM_CHECK(dm_fill(s, top, 100)); /* the top edge is hot, and stays so */
    DM_CHECK(dm_copy(s, plate, other));
    save(s, folder, "before", plate);
    DM_CHECK(dm_mean(s, plate, NULL, 0, total));
    DM_CHECK(dm_read(s, total, &before));

    DM_CHECK(dm_program_begin(s));
    spread(s, plate, side, other);
    spread(s, other, side, plate);
    DM_CHECK(dm_program_end(s, &two));
    DM_CHECK(dm_program_run(s, two, steps / 2, 0, NULL));

    DM_CHECK(dm_mean(s, plate, NULL, 0, total));
    DM_CHECK(dm_read(s, total, &after));
    printf("%d workers, %lld steps: the mean rises from %.6f to %.6f\n", dm_workers(s), (long long)steps,
           before, after);
    save(s, folder, "after", plate);
    DM_CHECK(dm_program_destroy(s, two));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
