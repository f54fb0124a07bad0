/* A loop that survives the end of its job: heat spreads over a plate, step by step. It goes on from its newest
 * checkpoint, saves every so many steps while it goes on, and when a signal says that the job's time is nearly
 * over, saves once more and leaves with the status that means "run me again". Whatever interrupts it, the
 * result is the same to the last bit.
 *
 *   resume SERIES [STEPS [SIDE [EVERY]]]        prints the last step and the plate's heat
 *
 * scripts/sbatch-template.sh runs it as a job that is requeued. */
#include <dmath/check.h>
#include <dmath/dmath.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct plate {
    dm_array heat, next; /* side x side, with a rim that stays as it is */
    int64_t side;
} plate;

/* A view of the inner elements, moved by (rows, cols). */
static dm_array inner(dm_session *s, dm_array a, int64_t side, int64_t rows, int64_t cols)
{
    dm_array view;
    const int64_t lo[2] = {1 + rows, 1 + cols}, extent[2] = {side - 2, side - 2};
    DM_CHECK(dm_array_view(s, a, lo, extent, &view));
    return view;
}

/* Each inner element becomes the mean of its neighbours and itself. */
static void spread(dm_session *s, const plate *p)
{
    DM_CHECK(dm_scope_begin(s));
    const dm_map_arg args[] = {
        DM_ARG("c", inner(s, p->heat, p->side, 0, 0)), DM_ARG("n", inner(s, p->heat, p->side, -1, 0)),
        DM_ARG("s", inner(s, p->heat, p->side, 1, 0)), DM_ARG("w", inner(s, p->heat, p->side, 0, -1)),
        DM_ARG("e", inner(s, p->heat, p->side, 0, 1))};
    dm_array out = inner(s, p->next, p->side, 0, 0);
    DM_CHECK(dm_map(s, "(c + n + s + w + e) / 5", 5, args, out));
    DM_CHECK(dm_copy(s, out, inner(s, p->heat, p->side, 0, 0)));
    DM_CHECK(dm_scope_end(s, NULL, 0));
}

static void make(dm_session *s, plate *p)
{
    dm_array rim;
    DM_CHECK(dm_matrix(s, DM_F64, p->side, p->side, &p->heat));
    DM_CHECK(dm_matrix(s, DM_F64, p->side, p->side, &p->next));
    DM_CHECK(dm_fill_uniform(s, p->heat, 0, 1, 7));
    DM_CHECK(dm_rows(s, p->heat, 0, 1, &rim));
    DM_CHECK(dm_fill(s, rim, 100));
    DM_CHECK(dm_array_destroy(s, rim));
}

static void report(dm_session *s, const plate *p, int64_t step)
{
    dm_array sum;
    double heat;
    DM_CHECK(dm_array_create(s, DM_F64, 0, NULL, NULL, &sum));
    DM_CHECK(dm_sum(s, p->heat, NULL, 0, 1, 0, sum));
    DM_CHECK(dm_read(s, sum, &heat));
    printf("step %lld: heat %a\n", (long long)step, heat);
    DM_CHECK(dm_array_destroy(s, sum));
}

int main(int argc, char **argv)
{
    const char *series = argc > 1 ? argv[1] : "plate";
    const int64_t steps = argc > 2 ? atoll(argv[2]) : 1000, every = argc > 4 ? atoll(argv[4]) : 100;
    plate p = {.side = argc > 3 ? atoll(argv[3]) : 500};
    dm_config config = DM_CONFIG_INIT;
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    dm_event saved = {0};
    dm_session *s;
    int64_t step = 0;
    int leave = 0;
    config.options = "catch_signals=1"; /* SIGUSR1 and SIGTERM are for dm_checkpoint_boundary */
    options.keep = 2;
    DM_CHECK(dm_init(&config, &s));
    make(s, &p);
    DM_CHECK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_ARRAY("heat", p.heat)));
    DM_CHECK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_VALUE("step", &step)));
    if (dm_checkpoint_exists(series)) {
        DM_CHECK(dm_checkpoint_load(s, series, 0, NULL));
        fprintf(stderr, "goes on from step %lld\n", (long long)step);
    }
    while (step < steps && !leave) {
        spread(s, &p);
        step++;
        DM_CHECK(dm_sync(s)); /* or the signal finds many steps queued, which the checkpoint waits for */
        DM_CHECK(dm_checkpoint_boundary(s, series, &options, &leave));
        if (!leave && step % every == 0) {
            DM_CHECK(dm_checkpoint_save(s, series, 0, NULL, &options, &saved)); /* the loop goes on */
        }
    }
    if (saved.session) {
        DM_CHECK(dm_event_wait(s, saved, -1)); /* reports what went wrong with the last one */
    }
    if (!leave) {
        report(s, &p, step);
    } else {
        fprintf(stderr, "leaves at step %lld\n", (long long)step);
    }
    DM_CHECK(dm_array_destroy(s, p.heat));
    DM_CHECK(dm_array_destroy(s, p.next));
    DM_CHECK(dm_finalize(s, NULL));
    return leave ? DM_EXIT_REQUEUE : EXIT_SUCCESS;
}
