/* dmath: the profile: what each operation took; and times of the program's own.  BSD-3-Clause, see LICENSE.
 * Included by dmath.h.
 *
 * With the option profile (DMATH_PROFILE=1, or a file's name; dm_config.options) a session counts, for each
 * operation of the table that `dmath info` lists, calls, times, bytes and floating-point operations.
 * dm_finalize prints the table to stderr, or writes it to the file; dm_profile and dm_profile_rows give it at
 * any time. Calls inside programs count with each run of the program, under their own operations, elementwise
 * ones that run as one together under `joined`; the runs are the operation `program`. What a call is made of
 * counts one by one: a solve with a triangle, for instance, is some trsm and some gemm. Cost: with the option
 * some 0.2 us a step; on GPUs events around each step, and no CUDA graphs; and at the start of the session each
 * worker measures what its device reaches in a copy of 16 MiB and in products, all of them at once, for some
 * 50 ms, on one GPU up to a second (several GPUs measure it
 * anyway). Without the option nothing. */
#ifndef DMATH_PROFILE_H
#define DMATH_PROFILE_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operation. Times of workers are added up over all of them, so with P workers that are busy all the time they come
 * to P seconds a second. */
typedef struct dm_profile_row {
    size_t size;           /* of rows[0] set by the caller: sizeof(dm_profile_row) */
    const char *op;        /* its name; good for ever */
    int64_t calls;
    double master_s;       /* of the program's thread: checks, and sending the command */
    double waited_s;       /* of the program's thread: inside calls that wait for this command (reads, files) */
    double kernel_s;       /* of workers: in kernels, in files and in user functions; on GPUs by events */
    double send_s;         /* of workers: from when a payload is ready to when it has left */
    double receive_s;      /* of workers: from the offer of a place to the arrival, the wait for the peer included */
    double idle_s;         /* of workers on CPUs: their next kernel waits for a payload, or for another command */
    int64_t bytes;         /* of the operands, as often as they are read or written */
    int64_t bytes_sent;    /* by workers to one another and to the master */
    int64_t flops;         /* of products and solves, as dm_counters has them */
    double part; /* rate in kernels as a part of the machine's: the larger of those of flops and of bytes. Above
                  * 1 where caches hold the operands. 0: not known (emulated GPUs) */
} dm_profile_row;

/* *text = the table, a line an operation, those that took longest first. Blocks (as dm_sync). The text is the
 * caller's, for free(). Errors: DM_ERR_ARG (text), DM_ERR_STATE (the option profile is not set), DM_ERR_NOMEM, those
 * of dm_sync. */
DM_API DM_CHECKED dm_status dm_profile(dm_session *session, char **text);

/* The same as numbers. rows: room for `room` of them, one behind the other as far apart as rows[0].size says, or NULL
 * and 0. *count = how many operations were called; those beyond room are left out, the ones that took least. Blocks (as
 * dm_sync). Errors: DM_ERR_ARG (rows, room, count), DM_ERR_STATE (the option profile is not set), those of dm_sync. */
DM_API DM_CHECKED dm_status dm_profile_rows(dm_session *session, int room, dm_profile_row *rows, int *count);

/* Counts anew from here, for instance when a program has warmed up. Blocks (as dm_sync). Errors: DM_ERR_STATE (the
 * option profile is not set), those of dm_sync. */
DM_API DM_CHECKED dm_status dm_profile_reset(dm_session *session);

/* x = the time in ns at which the worker that holds the element comes to this call. On CPUs that is the host's
 * monotonic clock, on GPUs the device's. What was called before has been computed then, and what is called
 * later has not begun; so the difference of two such times is what this worker took for the calls between them,
 * with its waits for others. The program waits for nothing, and the call may be part of a dm_program. Large
 * sums that go on beside computing, and transfers, count where the worker waits for them. x: i64 of any shape,
 * without replicas. Compare times of one worker alone: the clocks of two are not set alike. Does not block.
 * Errors: DM_ERR_DTYPE (x is not i64), DM_ERR_LAYOUT (x has replicas). Cost: a kernel that writes x; on a GPU
 * independent calls before and after it do not overlap (option lanes). */
DM_API DM_CHECKED dm_status dm_clock(dm_session *session, dm_array x);

#ifdef __cplusplus
}
#endif
#endif
