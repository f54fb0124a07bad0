/* Groups points by k-means (Lloyd, 1982): each point joins the nearest centre, each centre moves to the mean of
 * its points. A round is a recorded program. The workers run it until no centre moves any more.
 *
 *   kmeans [FOLDER]        saves the points, the first and last centres and the groups to FOLDER */
#include "common/save.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>

enum { POINTS = 5000, DIMS = 8, GROUPS = 6, MOST_ROUNDS = 100 };

/* Points around GROUPS places, in no order. */
static void make_points(dm_session *s, dm_array x)
{
    dm_array places, which, offset;
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, GROUPS, DIMS, &places));
    DM_CHECK(dm_vector(s, DM_I32, POINTS, &which));
    DM_CHECK(dm_array_like(s, x, 0, &offset));
    DM_CHECK(dm_fill_normal(s, places, 0, 4, 1));
    DM_CHECK(dm_fill_uniform(s, which, 0, GROUPS, 2));
    DM_CHECK(dm_take(s, places, which, 0, DM_CLIP, offset));
    DM_CHECK(dm_fill_normal(s, x, 0, 1, 3));
    DM_CHECK(dm_add(s, 1, x, 1, offset, x));
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

/* Records one round: groups from the centres, centres from the groups; moved = how far a centre moved at most.
 */
static dm_program record_round(dm_session *s, dm_array x, dm_array centres, dm_array groups, dm_array moved,
                               dm_array rounds)
{
    dm_program round;
    dm_array distances, members, sums, counts, column;
    DM_CHECK(dm_program_begin(s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, POINTS, GROUPS, &distances));
    DM_CHECK(dm_matrix(s, DM_F64, POINTS, GROUPS, &members));
    DM_CHECK(dm_matrix(s, DM_F64, GROUPS, DIMS, &sums));
    DM_CHECK(dm_vector(s, DM_F64, GROUPS, &counts));
    DM_CHECK(dm_array_reshape(s, counts, 2, (int64_t[]){GROUPS, 1}, &column));

    DM_CHECK(dm_distances(s, x, centres, distances));
    DM_CHECK(dm_argmin(s, distances, (int[]){1}, 1, groups));
    DM_CHECK(dm_one_hot(s, groups, members));
    DM_CHECK(dm_gemm(s, DM_T, DM_N, 1, members, x, 0, sums));
    DM_CHECK(dm_sum_dim(s, members, 0, counts));
    /* A centre without points stays. */
    dm_map_arg means[] = {DM_ARG("sums", sums), DM_ARG("n", column), DM_ARG("centres", centres)};
    DM_CHECK(dm_map(s, "where(n > 0, sums / maximum(n, 1), centres)", 3, means, sums));
    dm_map_arg step[] = {DM_ARG("new", sums), DM_ARG("old", centres)};
    DM_CHECK(dm_map(s, "max(abs(new - old))", 2, step, moved));
    DM_CHECK(dm_copy(s, sums, centres));
    DM_CHECK(dm_map(s, "rounds + 1", 1, (dm_map_arg[]){DM_ARG("rounds", rounds)}, rounds));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_program_end(s, &round));
    return round;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL;
    dm_session *s;
    dm_array x, first, centres, groups, moved, rounds, sizes;
    int64_t size[GROUPS], count;
    DM_CHECK(dm_init(NULL, &s));
    DM_CHECK(dm_scope_begin(s));
    DM_CHECK(dm_matrix(s, DM_F64, POINTS, DIMS, &x));
    DM_CHECK(dm_matrix(s, DM_F64, GROUPS, DIMS, &centres));
    DM_CHECK(dm_vector(s, DM_I64, POINTS, &groups));
    DM_CHECK(dm_vector(s, DM_I64, GROUPS, &sizes));
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &moved));
    DM_CHECK(dm_array_create(s, DM_I64, 0, NULL, NULL, &rounds));
    make_points(s, x);
    DM_CHECK(dm_rows(s, x, 0, GROUPS, &first)); /* the first centres are points */
    DM_CHECK(dm_copy(s, first, centres));
    DM_CHECK(dm_fill(s, rounds, 0));
    save(s, folder, "points", x);
    save(s, folder, "first", first);

    dm_program round = record_round(s, x, centres, groups, moved, rounds);
    DM_CHECK(dm_program_run_until(s, round, MOST_ROUNDS, 1, moved, 1e-12, 0, NULL));
    DM_CHECK(dm_bincount(s, groups, DM_NO_ARRAY, sizes));

    DM_CHECK(dm_read(s, rounds, &count));
    DM_CHECK(dm_read(s, sizes, size));
    printf("%d workers, %d rounds, sizes of the groups:", dm_workers(s), (int)count);
    for (int i = 0; i < GROUPS; i++) {
        printf(" %d", (int)size[i]);
    }
    printf("\n");
    save(s, folder, "centres", centres);
    save(s, folder, "groups", groups);
    save(s, folder, "rounds", rounds);
    DM_CHECK(dm_program_destroy(s, round));
    DM_CHECK(dm_scope_end(s, NULL, 0));
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
