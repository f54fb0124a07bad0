/* Replays whose calls are not made: all words of a journal are read and checked, and where a call would make
 * something, the journal gets what there is. */
#include "journal_read.h"

#include <dmath/dmath_mpi.h>

const journal_shelf *journal_shelf_now;

static dm_status no_sync(dm_session *session)
{
    (void)session;
    return DM_OK;
}

/* Nor are arrays read at the end: that takes workers. */
static dm_status no_read(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent, void *host,
                         int64_t ld)
{
    (void)session, (void)a, (void)lo, (void)extent, (void)host, (void)ld;
    return DM_OK;
}

#define dmi_replay_from journal_read_from
#define dmi_replay_run journal_read_run
#define dmi_replay_calls journal_read_calls
#define dmi_replay_call_count journal_read_call_count
#undef dm_sync
#undef dm_array_read
#define dm_sync no_sync
#define dm_array_read no_read
#include "api/replay.c"
#undef dm_sync
#undef dm_array_read

static dm_status call(dmi_replay *r)
{
    const journal_shelf *s = journal_shelf_now;
    for (int k = 0; k < r->outputs; k++) {
        for (int64_t i = 0; i < r->output[k].count; i++) {
            r->output[k].made[i] = r->output[k].kind == 'a'   ? s->array[(r->count + i) % JOURNAL_ARRAYS].id
                                   : r->output[k].kind == 'p' ? s->program.id
                                                              : s->group.id;
        }
    }
    return DM_OK;
}

#include "calls_not_made.h" /* each call is call(r) */
#pragma clang diagnostic ignored "-Wunused-variable"
#include "api_replay.c"
