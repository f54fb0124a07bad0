/* Running a journal again (master/journal.h). */
#ifndef DMI_REPLAY_H
#define DMI_REPLAY_H

#include "master/journal.h"

#include <stdio.h>

typedef struct dmi_replay dmi_replay;
/* Runs the journal in a session; lines about reads and, at the end, about each array that is there go to `to`.
 * The error of a journal that cannot be read names the line. Calls that failed when they were kept are not run.
 */
DM_CHECKED dm_status dmi_replay_run(dm_session *session, const char *path, FILE *to);
/* The same of an open file, or of memory as a file; path, in messages: what it is. */
DM_CHECKED dm_status dmi_replay_from(dm_session *session, FILE *from, const char *path, FILE *to);
/* By the generated code: each takes the next argument. */
int64_t dmi_get_integer(dmi_replay *r);
double dmi_get_real(dmi_replay *r);
dm_array dmi_get_array(dmi_replay *r);
dm_program dmi_get_program(dmi_replay *r);
dm_group dmi_get_group(dmi_replay *r);
dm_factor dmi_get_factor(dmi_replay *r);
const char *dmi_get_text(dmi_replay *r);
const void *dmi_get_bytes(dmi_replay *r);
const void *dmi_get_sized(dmi_replay *r); /* a struct of options; not shorter than its size says */
const int64_t *dmi_get_integers(dmi_replay *r);
const int *dmi_get_ints(dmi_replay *r);
const double *dmi_get_reals(dmi_replay *r);
dm_array *dmi_get_arrays(dmi_replay *r);
const dm_map_arg *dmi_get_map_args(dmi_replay *r);
const dm_layout *dmi_get_layout(dmi_replay *r);
const void *dmi_get_data(dmi_replay *r, dm_array a, const int64_t *extent, int dtype);
/* Memory that the call fills; its checksum is printed. */
void *dmi_get_room(dmi_replay *r, dm_array a, const int64_t *extent, int dtype);
/* kind: a letter, as before handles. */
void *dmi_get_outputs(dmi_replay *r, int64_t count, char kind);
double dmi_get_seconds(dmi_replay *r); /* without a limit */
/* The workers of a group, and then how many there are. */
const int *dmi_get_group_workers(dmi_replay *r);
int dmi_get_group_count(dmi_replay *r);
const dm_checkpoint_item *dmi_get_items(dmi_replay *r);
const dm_checkpoint_item *dmi_get_kept(dmi_replay *r); /* its memory lasts as long as the replay */
const dm_checkpoint_options *dmi_get_checkpoint_options(dmi_replay *r);
dm_session *dmi_replay_session(const dmi_replay *r);
int64_t dmi_replay_length(const dmi_replay *r); /* of the list that was read last; -1: there was none */
/* The call takes so many elements of a list of this length. */
void dmi_replay_fits(dmi_replay *r, int64_t length, int64_t taken);
/* All arguments could be read: the call may run. */
bool dmi_replay_ready(const dmi_replay *r);

typedef struct dmi_replay_call {
    const char *name;
    dm_status (*run)(dmi_replay *r);
} dmi_replay_call;
extern const dmi_replay_call dmi_replay_calls[];
extern const int dmi_replay_call_count;

#endif
