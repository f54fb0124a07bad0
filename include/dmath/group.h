/* dmath: groups: some of the workers, as a session of their own.  BSD-3-Clause, see LICENSE. Included by
 * dmath.h.
 *
 *     dm_group half;
 *     dm_group_create(s, workers, 4, &half);
 *     dm_group_begin(s, half);
 *     ...                                     -- arrays made here lie on the workers of the group
 *     dm_group_end(s);
 *
 * A command on arrays of a group occupies only workers that hold a part of them: the others skip it, and go on
 * with other commands. So two pipelines on groups without a common worker run side by side, though one thread
 * gives their commands. Groups may overlap. Arrays of different groups may meet in one call, as in dm_copy.
 * Rows that workers sort together (option sort_exchange) occupy all workers of the session; while a group has
 * begun they are not sorted so.
 *
 * Programs of groups run on their GPUs alone as others do (option program_device). But while one is put on its
 * GPUs the other workers of the session call nothing that waits for a GPU, and it waits until none of them
 * does. So with that option a pipeline may wait for an allocation of another one.
 *
 * A call that reads or writes elements of an array on workers of the group that has begun waits for the workers
 * of this group alone, not for what others are still at; failures it returns as dm_group_sync does.
 *
 * The counters of a group (dm_group_counters) and the timeline tell its commands from others: those that are
 * given between dm_group_begin and dm_group_end.
 *
 * No call of this header blocks but dm_group_sync, dm_group_wait and dm_group_counters; the others send
 * nothing. */
#ifndef DMATH_GROUP_H
#define DMATH_GROUP_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Groups belong to their session, and end with it at the latest. */
typedef struct dm_group {
    uint64_t id;
} dm_group;

/* Makes a group of these workers, in this order. workers[count]: their numbers in the session, distinct. The
 * group is destroyed by dm_group_destroy, or with the session. Errors: DM_ERR_ARG (workers, count, out),
 * DM_ERR_LIMIT (2^20 groups at once), DM_ERR_NOMEM. */
DM_API DM_CHECKED dm_status dm_group_create(dm_session *session, const int *workers, int count, dm_group *out);
/* Destroys the group, not the arrays on it. A zero group is ignored. Errors: DM_ERR_HANDLE; DM_ERR_STATE (it has
 * begun). */
DM_API DM_CHECKED dm_status dm_group_destroy(dm_session *session, dm_group group);

/* From here to dm_group_end, layouts mean the group: dm_workers is its size; layouts without `workers`, the default
 * one, and the numbers of workers in dm_layout_single and dm_layout_explicit count in it. dm_group_begin may be nested,
 * 16 deep: the numbers are then those of the inner group alone. Arrays made inside stay where they are. Errors:
 * DM_ERR_HANDLE; DM_ERR_STATE (end without a begin); DM_ERR_LIMIT (nested too deep). */
DM_API DM_CHECKED dm_status dm_group_begin(dm_session *session, dm_group group);
DM_API DM_CHECKED dm_status dm_group_end(dm_session *session);

/* The group's workers, as numbers of the session. workers: room for `room` of them, or NULL. *count: how many there
 * are. Errors: DM_ERR_HANDLE; DM_ERR_ARG (room is too small, count). */
DM_API DM_CHECKED dm_status dm_group_workers(dm_session *session, dm_group group, int room, int *workers, int *count);

/* Blocks until the group's workers have done all commands given so far, also those of other groups that they
 * are in: who shares a worker with a group that has a long command waits for that one. Others may still be at
 * work. Where workers are on other hosts it waits for their last report. Errors: DM_ERR_HANDLE, those of
 * dm_sync: the failures of commands in which a worker of the group takes part. So a command of a group without
 * a common worker fails at a barrier of that group, or at dm_sync. A failure is returned once: the first call
 * that asks for one of its workers has it. What failed with it on workers that were not waited for is returned
 * later. After a failure it has waited for all workers. In a session of more than 64 workers, those whose
 * numbers differ by a multiple of 64 count as one for failures. */
DM_API DM_CHECKED dm_status dm_group_sync(dm_session *session, dm_group group);

/* Waits at most so many seconds (0: only looks; negative: no limit) until the group's workers have done all
 * commands given so far. *done = 1 if they have; 0: the time is over, which is no error. Errors: DM_ERR_HANDLE,
 * DM_ERR_ARG (done, seconds), those of dm_group_sync. */
DM_API DM_CHECKED dm_status dm_group_wait(dm_session *session, dm_group group, double seconds, int *done);

/* What the group's workers have done for commands of the group, added up; workspace_peak_bytes: the largest of
 * one command. A command is the group's that had begun last when it was given, wherever its arrays lie; a run
 * of a program given outside groups is that of the group in which the recording ended. So groups that share
 * workers count apart, and what is given outside groups counts in none. commands: one for each worker that
 * takes part; making and destroying arrays are none. Blocks as dm_group_sync. Errors: DM_ERR_HANDLE, DM_ERR_ARG
 * (out), those of dm_group_sync. Cost: dm_group_sync twice, and a command to all workers. */
DM_API DM_CHECKED dm_status dm_group_counters(dm_session *session, dm_group group, dm_counters *out);

#ifdef __cplusplus
}
#endif

#endif
