/* dmath: mathematics on matrices spread over many workers, from a sequential program.
 *
 * BSD-3-Clause, see LICENSE. Link with -ldmath (pkg-config dmath, or CMake's dmath::dmath).
 *
 * Words. A *session* owns *workers*; each worker owns one device (CPU cores or a GPU). An *array* has an
 * element type, up to 8 dims (row-major) and is spread over the workers in *blocks* as its *layout* says. A
 * *view* is a rectangle of an array, or its elements under another shape; it is a dm_array too and usable as
 * any operand, outputs included. All indices count from 0, all sizes are int64_t.
 *
 * The text of a call has, in this order: what it computes; shapes, types, units; whether it blocks; what belongs to
 * whom; errors; cost; source. The head of a header, or of a section in it, says what all of its calls have in common.
 *
 * Rules that hold for every call unless its own text says otherwise:
 *  - It returns a status; outputs are set only on DM_OK; dm_error_message() then has the details.
 *  - Structures with a field `size` carry sizeof of the caller's header. A smaller one, of a program built with an
 *    older header, is accepted: what it lacks counts as zero, and is not written. Of a larger one, of a newer header,
 *    what this library does not know must be zero (DM_ERR_ARG), or becomes zero in an output. Structures without such a
 *    field never change their layout: dm_array, dm_group, dm_program, dm_event, dm_map_arg, dm_factor, dm_block,
 *    dm_program_binding, dm_checkpoint_item, dm_train_event (<dmath/nn.h>), dm_c64, dm_c128.
 *  - Extents, strides and `ld` are in elements, memory is in bytes, time in seconds.
 *  - It does not block: the command is queued, and commands take effect in the order of the calls. Calls that return
 *    data (dm_array_read, dm_array_load, dm_array_save, dm_sync, ...) wait for what they need.
 *  - What it is given stays the caller's, and is read before it returns: names, shapes, options, host memory. Arrays
 *    and views that it makes are the caller's to destroy; so are texts, by free().
 *  - It is checked completely before anything is sent, so a bad call changes nothing.
 *  - Errors of any call, which the texts below do not repeat: DM_ERR_HANDLE (the session is NULL, an array is zero,
 *    destroyed or another session's), DM_ERR_STATE (the session has ended; a call that moves data to or from the
 *    program or a file, between dm_explain_begin and dm_explain_end or while a program is recorded), DM_ERR_ARG (an
 *    output is NULL, the size field of a structure is not set), DM_ERR_NOMEM; with arrays as operands DM_ERR_LIMIT (the
 *    option memory_limit leaves no room for the workspace). Calls that wait return what workers report too. With the
 *    option sync all calls wait.
 *  - Costs are floating-point operations (flops) of all workers together, reads and writes of memory, workspace, and
 *    what workers send one another. Flops are those of real types; of complex types they are four times as many: a
 *    complex multiplication with its addition is 8 operations on real numbers. A call on arrays without a cost reads its
 *    inputs and writes its outputs once, and a worker is sent what it lacks; others send a small message to each worker,
 *    or nothing.
 *  - A failure on a worker (a full disk, no memory) is reported by the next call that waits, with the command,
 *    the worker and the host. Arrays that depend on the failed result are poisoned until wholly rewritten; their
 *    error (DM_ERR_POISONED) names the command that failed first. A cached replica (option replicas) fails with
 *    its product: a later product of the same operand, called before the failure was reported, may be poisoned
 *    too.
 *  - Any layouts and, where the text lists several, any mixture of element types may be combined: dmath moves
 *    and converts what it must.
 *  - A session is used by the thread that started it, or that took it over (dm_session_take in <dmath/control.h>);
 *    calls from others are DM_ERR_STATE. Every call may be made only where dm_init returned: rank 0. Under a launcher,
 *    what the program does before dm_init happens on every rank.
 *  - A worker that makes no progress for watchdog_s (option, 120 s; a warning comes after a quarter) makes the waiting
 *    call return DM_ERR_TIMEOUT, which names it. A user function may take ten times as long, and so may a file, with a
 *    second more for every 20 MB that the worker holds. A kernel on a CPU may take as long as it gets processor time,
 *    up to watchdog_s of it and a second more for every 20 million operations of a product or 20 MB that the worker
 *    holds. Time in which the job is suspended, or a worker is ready and gets no processor, does not count. dm_sync
 *    waits once more; until it returns DM_OK, host memory given to the call that timed out stays in use. dm_finalize
 *    gives the worker up.
 *  - A process of a job that dies ends the job (option liveness), and that of a worker whose GPU has failed ends.
 *    Where the process of a worker dies on rank 0's host,
 *    rank 0 says within a second on stderr which one and in which command, and calls return DM_ERR_DIED; a second
 *    later, or when the program ends itself, rank 0 ends with a status that is not 0. Where rank 0 dies, or what
 *    started a rank (mpirun, its daemon, srun's), the processes of that host leave. Of other hosts rank 0 hears by
 *    messages: of a worker's death there within a second; if it hears nothing of a host for heartbeat_s (option, 30 s,
 *    and up to 2 s more), the host is lost, which is a death of the first worker there. A host that hears nothing of
 *    rank 0 for as long leaves. Time in which the side that listens was stopped does not count. Where the first process
 *    of another host is stopped and not dead, those beside it leave after heartbeat_s as well. Where the program has
 *    initialised MPI (dm_init_comm) this needs MPI_THREAD_MULTIPLE; without it rank 0 learns of other hosts from the
 *    launcher only, or by watchdog_s.
 *  - With the option on_death=session the death of a worker's process ends the session and not the job: one line on
 *    stderr as above, every call that waits or comes later returns DM_ERR_DIED with it, and dm_finalize returns at once
 *    (DM_OK if a call has returned the death, else DM_ERR_DIED). Then dm_init starts a session on the workers that are
 *    left, numbered anew from 0; dm_checkpoint_load (<dmath/checkpoint.h>) has the arrays. A worker comes to it when
 *    its step is done; where that takes longer than meet_s, dm_init returns DM_ERR_TIMEOUT and may be called again. If
 *    none is left, it returns DM_ERR_STATE. For workers of one host, on CPUs with direct transport, under `mpirun
 *    --enable-recovery` (Open MPI 4; mpirun then ends with status 0, whatever the ranks end with) or srun without
 *    --kill-on-bad-exit (it ends with the status of the dead; a rank sees that option only as SLURM_KILL_BAD_EXIT);
 *    else dm_init returns DM_ERR_CONFIG and says which of these is missing. A death while dm_init
 *    or dm_finalize runs ends the job. Workers that are threads die with the program: for them the option means
 *    nothing.
 *  - A worker without host memory for its part of a command, or whose payload MPI refuses, ends the session: every call
 *    returns DM_ERR_NOMEM or DM_ERR_TRANSPORT; only dm_finalize is left; until it returns, host memory of the failing
 *    call stays in use.
 *  - A session belongs to the process that made it. In a child made by fork every call on it is DM_ERR_STATE; a child
 *    of a program that runs without a launcher may start its own, on CPUs: GPUs do not follow it there.
 *  - Fills are the same to the last bit on any number of workers and any layout; products and sums to rounding. */
#ifndef DMATH_H
#define DMATH_H

#include <dmath/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DM_VERSION_MAJOR 0
#define DM_VERSION_MINOR 1
#define DM_VERSION_PATCH 0

/* ---- status ---------------------------------------------------------------------------------------------- */

/* "ERR_SHAPE" for DM_ERR_SHAPE; "?" for an unknown code. */
DM_API const char *dm_status_name(dm_status status);
/* What the status means, one sentence. */
DM_API const char *dm_status_text(dm_status status);
/* Details of the last failure in the calling thread; the library's, valid until that thread's next failing call. */
DM_API const char *dm_error_message(void);
/* Makes a text (printf's format) what dm_error_message gives in this thread, and returns status: for libraries on top
 * of dmath, whose calls fail as dmath's do. Calls no error handler. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
DM_API dm_status dm_error_set(dm_status status, const char *format, ...);
/* DM_ERR_NOMEM, for such a library, when an allocation of so many bytes has failed: "no memory for WHAT", then
 * the bytes that were asked for, the host's that are free, and this process's. */
DM_API dm_status dm_error_no_memory(const char *what, size_t bytes);
/* "0.1.0" of the library that is running (the header's is DM_VERSION_*). */
DM_API const char *dm_version(void);
/* Bytes of one element, and the type's name ("f32"); 0 and "?" for an unknown code. */
DM_API int64_t dm_dtype_bytes(dm_dtype dtype);
DM_API const char *dm_dtype_name(dm_dtype dtype);

/* ---- session --------------------------------------------------------------------------------------------- */

typedef struct dm_session dm_session;

/* Called at every failing call on the session (its dm_init included) that returns a status, in the thread of the
 * caller, before the call returns: after the message is set, which stays what it was whatever the handler calls. It is
 * not called for calls that fail inside it. It may end the program (exit, abort), but not leave by longjmp or an
 * exception. What context points to must last as long as calls are made on the session, failing ones after dm_finalize
 * included. A call that names no session, or NULL, has no handler. */
typedef void (*dm_error_function)(void *context, dm_status status, const char *message);

/* How a session is set up. Make one with DM_CONFIG_INIT, then set fields. */
typedef struct dm_config {
    size_t size;         /* sizeof(dm_config): set by DM_CONFIG_INIT */
    int workers;         /* in-process workers; 0: DMATH_WORKERS, or one a GPU, or the cores of this machine up
                          * to 4 */
    const char *options; /* "key=value,key=value", each key once, over the environment's DMATH_KEY; see `dmath info`;
                          * may be NULL */
    dm_error_function on_error; /* NULL: failures are statuses, and nothing more */
    void *error_context;
} dm_config;
#define DM_CONFIG_INIT {sizeof(dm_config), 0, NULL, NULL, NULL}

/* Starts a session. Collective over all ranks of an MPI job.
 *
 * Without a launcher, or as `mpirun -n 1`: the workers are threads of this process, MPI is not initialised.
 * Under `mpirun -n P+1`: MPI is initialised here; rank 0 returns with P workers. On the other ranks the call
 * does not return: they serve until rank 0's dm_finalize and then end the process with status 0. Ranks may run
 * this program or `dmath-worker`.
 *
 * config may be NULL: all defaults; it is read during the call. Blocks until all workers are there. The session
 * ends with dm_finalize.
 *
 * Errors: DM_ERR_CONFIG an option is not understood, or an object of the option load not found; DM_ERR_ARG
 * workers is not 0 to 65536; DM_ERR_VERSION ranks run different builds, or registered different functions;
 * DM_ERR_TRANSPORT no transport between two workers passes its check, or the forced one does not; DM_ERR_STATE
 * called inside a function given to dm_register, or MPI was already initialised by the program (use
 * dm_init_comm), or the worker processes of this launch have left with an earlier session; DM_ERR_TIMEOUT a
 * rank did not come within meet_s (option, 120 s) of the return of MPI_Init on rank 0 (a rank that exits with
 * status 0 before dm_init leaves Open MPI 4.1 waiting in it); DM_ERR_NOMEM, also where less than 192 KiB of the
 * calling thread's stack are left (ulimit -s). What one rank alone finds wrong is returned on all, with its
 * number. Cost: each pair of workers tries its transport; with several GPUs, links and products are measured.
 */
DM_API DM_CHECKED dm_status dm_init(const dm_config *config, dm_session **session);

/* Ends a session: frees arrays that are still alive and reports how many through *alive (NULL: a warning is logged
 * instead, if there are any). The handle is dead afterwards: any use of it is DM_ERR_STATE. A program that ends without
 * it gets a warning, loses what was not done yet, and under a launcher ends the job as a failed one. Workers on GPUs of
 * this process end with CUDA, in exit(): an atexit() handler may finalize their session only if it is set after
 * dm_init, else the call is DM_ERR_STATE. Blocks until all commands are done. Errors: that of a command that failed and
 * was not reported yet; the session is ended all the same. */
DM_API DM_CHECKED dm_status dm_finalize(dm_session *session, int64_t *alive);

/* Blocks until all commands given so far are done on all workers. Errors: the failures since the last report; none of
 * its own. */
DM_API DM_CHECKED dm_status dm_sync(dm_session *session);

/* Number of workers; 0 of a session that has ended. */
DM_API int dm_workers(const dm_session *session);

/* An empty command to all workers: for measurements. Does not block. No errors of its own. */
DM_API DM_CHECKED dm_status dm_noop(dm_session *session);

/* ---- layouts --------------------------------------------------------------------------------------------- */

enum { DM_CONTIGUOUS = 0, DM_CYCLIC = 1 };

/* Which worker holds which block: plain data. Start from one of the dm_layout_* makers below, which send nothing, and
 * change fields as needed. Where it does not fit an array, or the session, the call that takes it fails. */
typedef struct dm_layout {
    size_t size;                 /* sizeof(dm_layout): set by the makers */
    int kind;                    /* 0: grid; 1: explicit map; 2: all on worker `single`; -1: default of the shape */
    int single;
    int64_t block[DM_MAX_DIMS];  /* block size of each dim in elements; 0: chosen for you */
    int grid[DM_MAX_DIMS];       /* workers along each dim; 0 means 1 */
    int order[DM_MAX_DIMS];      /* DM_CONTIGUOUS or DM_CYCLIC, a dim */
    /* complete copies of the array, each on its own product(grid) workers; 0 means 1 */
    int replicas;
    const int *workers;          /* which workers, in this order; NULL: 0, 1, 2, ...; read during the call */
    int nworkers;                /* how many in workers[] */
    const int *map;              /* explicit: worker of each block, row-major over the blocks; read during the call */
    int64_t map_count;
} dm_layout;

/* Dim 0 split over all workers, one contiguous block each, and no other dim. An array of less than 4 KiB
 * lies whole on worker 0. */
DM_API dm_layout dm_layout_default(void);
/* Split along dim 0 / dim 1 / dim `dim` over all workers of the session, one contiguous block each. */
DM_API dm_layout dm_layout_rows(const dm_session *session);
DM_API dm_layout dm_layout_cols(const dm_session *session);
DM_API dm_layout dm_layout_split(const dm_session *session, int dim);
/* Blocks of `block` elements of dim `dim` dealt out in turn. */
DM_API dm_layout dm_layout_cyclic(const dm_session *session, int dim, int64_t block);
/* 2-D block-cyclic on a grid of grid_rows x grid_cols workers (row-major), as ScaLAPACK's. */
DM_API dm_layout dm_layout_grid(int grid_rows, int grid_cols, int64_t block_rows, int64_t block_cols);
/* Every worker holds the whole array. */
DM_API dm_layout dm_layout_replicated(const dm_session *session);
/* All of it on one worker. */
DM_API dm_layout dm_layout_single(int worker);
/* Blocks of block[ndim] elements, map[k] the worker of block k (row-major over the blocks). block is copied, map is
 * not: it is read where the layout is used. */
DM_API dm_layout dm_layout_explicit(int ndim, const int64_t *block, const int *map, int64_t map_count);

/* ---- arrays ---------------------------------------------------------------------------------------------- */

/* A handle; plain data, copy it freely. A destroyed, foreign or zero handle is an error and nothing worse. */
typedef struct dm_array {
    uint64_t id;
} dm_array;
#define DM_NO_ARRAY ((dm_array){0})

/* Creates an array of undefined contents. ndim 0..8, shape[d] >= 0; layout NULL: dm_layout_default(). Does not block.
 * The caller destroys it (dm_array_destroy, a scope). Errors: DM_ERR_ARG, DM_ERR_DTYPE, DM_ERR_LAYOUT, DM_ERR_LIMIT
 * (memory_limit exceeded, or too many arrays), DM_ERR_NOMEM (for the handle or the layout's tables; a worker without
 * memory for its shard says so at the next call that waits). Cost: on each worker the bytes of its shard, rounded up; a
 * small message, and once a layout its tables. */
DM_API DM_CHECKED dm_status dm_array_create(dm_session *session, dm_dtype dtype, int ndim, const int64_t *shape,
                                            const dm_layout *layout, dm_array *out);
/* dm_array_create of rows x cols with the default layout. */
DM_API DM_CHECKED dm_status dm_matrix(dm_session *session, dm_dtype dtype, int64_t rows, int64_t cols, dm_array *out);
/* dm_array_create of n elements, ndim 1, with the default layout. */
DM_API DM_CHECKED dm_status dm_vector(dm_session *session, dm_dtype dtype, int64_t n, dm_array *out);
/* A new array of undefined contents with a's shape and layout; dtype 0: a's. Where a is a rectangle of another array,
 * it is dealt out as that array is, by its own extents; where that array has an explicit map, by the default.
 * Ownership, errors and cost: as dm_array_create. */
DM_API DM_CHECKED dm_status dm_array_like(dm_session *session, dm_array a, dm_dtype dtype, dm_array *out);

/* Destroys an array or a view. Memory is free for later commands at once; commands already queued are not disturbed.
 * Views of a destroyed array keep its memory alive. A zero handle is accepted and ignored. Does not block. Errors:
 * DM_ERR_STATE (an array that was made before the program that is being recorded). */
DM_API DM_CHECKED dm_status dm_array_destroy(dm_session *session, dm_array a);

/* A scope: arrays and views made between dm_scope_begin and dm_scope_end are destroyed by the latter, but for those in
 * keep[nkeep], which belong to the scope around it from then on, or to none. Scopes nest. What was made before the
 * scope, or is destroyed inside it, is none of its business, and may stand in keep all the same, as may zero handles.
 * Neither call blocks. Errors: DM_ERR_STATE (end: no scope is open; it was opened before the program that is being
 * recorded), DM_ERR_ARG (keep, nkeep), DM_ERR_HANDLE (keep). */
DM_API DM_CHECKED dm_status dm_scope_begin(dm_session *session);
DM_API DM_CHECKED dm_status dm_scope_end(dm_session *session, const dm_array *keep, int nkeep);

typedef struct dm_array_info {
    size_t size; /* set by the caller: sizeof(dm_array_info) */
    dm_dtype dtype;
    int ndim;
    int64_t shape[DM_MAX_DIMS];
    int64_t block[DM_MAX_DIMS]; /* of the base array's layout */
    int grid[DM_MAX_DIMS];      /* 1 everywhere for an explicit map */
    int replicas;
    int is_view;
} dm_array_info;
/* *info = what is known of an array or view; no worker is asked. Does not block. No errors of its own. */
DM_API DM_CHECKED dm_status dm_array_query(dm_session *session, dm_array a, dm_array_info *info);
/* *worker = the worker (of the first replica) that holds the element at index[ndim]. Does not block. Errors: DM_ERR_ARG
 * (index). */
DM_API DM_CHECKED dm_status dm_array_owner(dm_session *session, dm_array a, const int64_t *index, int *worker);

/* A view of the rectangle [lo, lo+extent) of a (an array or a view). No view blocks or moves anything; the caller
 * destroys it. Errors: DM_ERR_ARG (lo, extent), DM_ERR_LIMIT (too many arrays). */
DM_API DM_CHECKED dm_status dm_array_view(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                                          dm_array *out);
/* A view with steps: index k along dim d is index lo[d] + k * step[d] of a. step[d] >= 1. Errors: DM_ERR_ARG (lo,
 * extent, step), DM_ERR_LIMIT (too many arrays). Cost: what reads and writes arrays element by element takes it as it
 * is (fills, copies, elementwise functions, expressions, dm_take, dm_put, transfers); all other operations work on a
 * copy, for the time. */
DM_API DM_CHECKED dm_status dm_array_slice(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                                           const int64_t *step, dm_array *out);
/* A view of the rows [first, first+count) of a: indices of dim 0. a: at least one dim. Errors: DM_ERR_ARG (first,
 * count), DM_ERR_SHAPE (ndim 0), DM_ERR_LIMIT (too many arrays). */
DM_API DM_CHECKED dm_status dm_rows(dm_session *session, dm_array a, int64_t first, int64_t count, dm_array *out);
/* A view of the same elements in row-major order under another shape. Always possible for a whole array split
 * along dim 0 whose blocks are whole numbers of new rows. Of an array that is not split also for a view of
 * consecutive elements, one or more, under one dim or more, if it begins at a whole number of rows of the new
 * shape; leading dims of 1 have no rows. Errors: DM_ERR_UNSUPPORTED where the elements do not lie so (copy them
 * to a suitable layout first), DM_ERR_SHAPE (another number of elements), DM_ERR_ARG (ndim, shape),
 * DM_ERR_LIMIT (too many arrays). */
DM_API DM_CHECKED dm_status dm_array_reshape(dm_session *session, dm_array a, int ndim, const int64_t *shape,
                                             dm_array *out);

/* Host memory -> array: the rectangle [lo, lo+extent) (lo, extent NULL: all of it). host holds the rectangle row-major
 * in the array's own dtype, which nothing checks: dm_write and dm_write_as below know the memory's type, and write a
 * rectangle through a view of it. ld: elements from one row (last dim) to the next, 0: packed; dims before the last two
 * are packed with it. Blocks until the data has left host, which is the caller's again then. Errors: DM_ERR_ARG (lo,
 * extent, host, ld), DM_ERR_LIMIT (too many arrays: a rectangle is a view for the time). Cost: each worker is sent what
 * it holds, each replica once. */
DM_API DM_CHECKED dm_status dm_array_write(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                                           const void *host, int64_t ld);
/* Array -> host memory, the same way. Blocks until all of it is there. Errors: as dm_array_write, and DM_ERR_POISONED
 * if the array is. Cost: each element is sent once. */
DM_API DM_CHECKED dm_status dm_array_read(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                                          void *host, int64_t ld);

/* The same with host memory of elements of `dtype`, converted as dm_copy does. Each chunk is a read or a write of its
 * own: after a failure on a worker some chunks may have been moved. Errors: as dm_array_read and dm_array_write,
 * DM_ERR_DTYPE (dtype), DM_ERR_NOMEM (for a chunk). Cost: the calling thread converts, in chunks of up to 2^19
 * elements; elements travel in the array's dtype. */
DM_API DM_CHECKED dm_status dm_array_read_as(dm_session *session, dm_array a, const int64_t *lo, const int64_t *extent,
                                             dm_dtype dtype, void *host, int64_t ld);
DM_API DM_CHECKED dm_status dm_array_write_as(dm_session *session, dm_array a, const int64_t *lo,
                                              const int64_t *extent, dm_dtype dtype, const void *host, int64_t ld);
/* dm_array_read and dm_array_write of all of a, packed, where host's elements have the C type that elements of `dtype`
 * have (f16, bf16 and u16: uint16_t all). Errors: as there, DM_ERR_DTYPE where a's elements have another C type. */
DM_API DM_CHECKED dm_status dm_read_checked(dm_session *session, dm_array a, dm_dtype dtype, void *host);
DM_API DM_CHECKED dm_status dm_write_checked(dm_session *session, dm_array a, dm_dtype dtype, const void *host);
/* Macros that take the type from a pointer (C11, C++), for whole arrays and views, packed:
 *   dm_read(session, a, pointer), dm_write(session, a, pointer): refuse another type (DM_ERR_DTYPE);
 *   dm_read_as(session, a, pointer), dm_write_as(session, a, pointer): convert.
 * A pointer to what is no element type does not compile, nor does uint16_t, which is three types, with the last two.
 * With those uint8_t is u8. bool is for arrays of bool alone. */
#define dm_read(session, a, pointer) dm_read_checked((session), (a), DM_DTYPE_OF(pointer), (pointer))
#define dm_write(session, a, pointer) dm_write_checked((session), (a), DM_DTYPE_OF(pointer), (pointer))
#define dm_read_as(session, a, pointer)                                                                        \
    dm_array_read_as((session), (a), NULL, NULL, DM_NUMBER_OF(pointer), (pointer), 0)
#define dm_write_as(session, a, pointer)                                                                       \
    dm_array_write_as((session), (a), NULL, NULL, DM_NUMBER_OF(pointer), (pointer), 0)

/* *value = a[index[ndim]], converted to f64 as dm_copy does. index: NULL will do where a has no dims. Blocks. Errors:
 * DM_ERR_ARG (index, value), DM_ERR_POISONED, DM_ERR_LIMIT (too many arrays). Cost: a round trip to a worker; for more
 * than a few elements dm_array_read is the call. */
DM_API DM_CHECKED dm_status dm_item(dm_session *session, dm_array a, const int64_t *index, double *value);
/* a[index[ndim]] = value; index as of dm_item. Does not block. Errors: DM_ERR_ARG (index; value, in an integer dtype),
 * DM_ERR_LIMIT (too many arrays). Cost: a command. */
DM_API DM_CHECKED dm_status dm_set_item(dm_session *session, dm_array a, const int64_t *index, double value);

/* *out = a new array with a file's contents, dtype and shape, in the given layout (NULL: the default). NumPy
 * .npy files, C and Fortran order, up to 8 dims, the dtypes above, both byte orders (bool: '|b1'; bf16 and the
 * 8-bit floats: as ml_dtypes writes them, 'V2', 'V1', 'f1'). Every worker reads its own shard, so the path must
 * name the same file on all hosts; a relative one means the program's folder at the call. Blocks. The caller
 * destroys the array. Errors: DM_ERR_IO, DM_ERR_FORMAT, both with path and reason; DM_ERR_ARG (path, layout),
 * DM_ERR_LAYOUT, DM_ERR_LIMIT and DM_ERR_NOMEM as dm_array_create. Cost: each shard is read once, each replica
 * for itself; nothing moves. */
DM_API DM_CHECKED dm_status dm_array_load(dm_session *session, const char *path, const dm_layout *layout,
                                          dm_array *out);
/* The same, converted to `dtype` as dm_copy does; 0: the file's. Errors: as dm_array_load, and DM_ERR_DTYPE (dtype).
 * Cost: while it converts, the array is in memory in both types. */
DM_API DM_CHECKED dm_status dm_array_load_as(dm_session *session, const char *path, dm_dtype dtype,
                                             const dm_layout *layout, dm_array *out);
/* Saves an array as a .npy file, C order, little endian; path as of dm_array_load. The file appears under its name only
 * when it is whole and on the disk, in place of a file of that name, or of the one that a link of that name leads to,
 * whose mode it takes; until then a file beside it, with ".partial-" and numbers at the end of its name, is written. If
 * this program dies, the next save into that folder from this host removes it. What workers of other hosts write is as
 * safe as their file system makes it when a file is closed. Blocks. Errors: DM_ERR_IO, also where something else (a
 * device, a folder) has the name; DM_ERR_POISONED if the array is; DM_ERR_ARG (path). Cost: each worker of the first
 * replica writes its shard. */
DM_API DM_CHECKED dm_status dm_array_save(dm_session *session, dm_array a, const char *path);

/* A file that the program writes itself, whole or not at all, as dm_array_save does. dm_file_begin makes an
 * empty file beside the one of this name; the program writes it under the name that dm_file_path gives, which
 * is good until the file is finished or dropped, and closes it. dm_file_finish brings it to the disk and gives
 * it its name; dm_file_drop removes it, and accepts NULL. Both end *file, also where they fail. What ends the
 * process before (the second Ctrl-C with the option interrupt, the death of a worker) removes it; else the next
 * one that begins in that folder on this host does, or the next dm_array_save. No session is needed; from any
 * thread. Block. Errors: DM_ERR_IO, DM_ERR_NOMEM, DM_ERR_ARG (path, file). Cost: the folder is read once. */
typedef struct dm_file dm_file;
DM_API DM_CHECKED dm_status dm_file_begin(const char *path, dm_file **file);
DM_API const char *dm_file_path(const dm_file *file);
DM_API DM_CHECKED dm_status dm_file_finish(dm_file *file);
DM_API void dm_file_drop(dm_file *file);

/* ---- filling --------------------------------------------------------------------------------------------- */
/* Values depend only on the arguments and on an element's index in x: not on the layout, nor on the number of workers,
 * bit for bit. x: any shape, layout and dtype, unless said. For integer dtypes and bool, whose range is 0 to 1, the
 * numbers must be whole and in range. None blocks. Cost: x is written once, where it lies; nothing is sent. */

/* x[i] = value. Errors: DM_ERR_ARG (value, in an integer dtype). */
DM_API DM_CHECKED dm_status dm_fill(dm_session *session, dm_array x, double value);
/* x[i, j] = value where i = j, else 0. x: two dims. Errors: DM_ERR_SHAPE, DM_ERR_ARG (value, in an integer dtype). */
DM_API DM_CHECKED dm_status dm_fill_identity(dm_session *session, dm_array x, double value);
/* x[i] = start + step * i, i the row-major index. Errors: DM_ERR_ARG, in an integer dtype (start, step, or the last
 * element leaves the dtype). */
DM_API DM_CHECKED dm_status dm_fill_arange(dm_session *session, dm_array x, double start, double step);
/* x[i] uniform in [lo, hi); of integers and bool lo <= x < hi; lo == hi: all lo. x: real. Of f16, bf16 and 8-bit floats
 * made in f32 and rounded; what would come to hi, rounded too, is the number before it. Errors: DM_ERR_DTYPE (complex),
 * DM_ERR_ARG (lo > hi; hi - lo is no number of f64; lo, hi in an integer dtype). Source: Philox4x32-10 over the index
 * (Salmon et al., SC'11). */
DM_API DM_CHECKED dm_status dm_fill_uniform(dm_session *session, dm_array x, double lo, double hi, uint64_t seed);
/* x[i] normal with the given mean and standard deviation. x: a float. Errors: DM_ERR_DTYPE (no float), DM_ERR_ARG
 * (deviation < 0). Source: Box & Muller (1958) of the numbers of Philox. */
DM_API DM_CHECKED dm_status dm_fill_normal(dm_session *session, dm_array x, double mean, double deviation,
                                           uint64_t seed);

/* ---- moving ---------------------------------------------------------------------------------------------- */

/* dst = src: copy, conversion and remap between any two layouts in one. src broadcasts to dst: shapes are aligned at
 * the last dim, and a missing dim or a dim of 1 repeats. Types: any, converted: float to float rounds to nearest even;
 * float to integer truncates and saturates, NaN gives 0; integer to integer wraps; to bool: is it not 0 (NaN: yes);
 * from bool: 0 or 1; complex to real takes the real part. What rounds beyond the range of f8e4m3, which has no Inf, is
 * NaN. src and dst may not overlap unless they are the same elements. Does not block. Errors: DM_ERR_SHAPE,
 * DM_ERR_OVERLAP. Cost: src is read and dst written once. Workers send one another only what the receiver does not
 * hold, in the narrower of the two dtypes, each element once. */
DM_API DM_CHECKED dm_status dm_copy(dm_session *session, dm_array src, dm_array dst);
/* dst = src with its dims in the order perm: dst.shape[d] == src.shape[perm[d]]. Types and cost: as dm_copy. src and
 * dst may not overlap. Does not block. Errors: DM_ERR_ARG (perm), DM_ERR_SHAPE, DM_ERR_OVERLAP. */
DM_API DM_CHECKED dm_status dm_permute(dm_session *session, dm_array src, const int *perm, dm_array dst);
/* dst = src^T: dm_permute of a matrix m x n to n x m. Errors: DM_ERR_SHAPE, DM_ERR_OVERLAP. */
DM_API DM_CHECKED dm_status dm_transpose(dm_session *session, dm_array src, dm_array dst);

/* ---- elementwise ----------------------------------------------------------------------------------------- */
/* Shapes: operands broadcast to out: they are aligned at the last dim; a missing dim or a dim of 1 repeats. Types: any.
 * Computed in the type that NumPy's promote_types gives for the operands (short floats in f32), but an integer with a
 * float, and integers with a floating output, in f64; converted to the output's dtype as dm_copy does. Integer operands
 * with an integer output: whole alpha and beta, arithmetic in int64 with wrap-around. A term with a zero factor is not
 * read. Outputs may be one of the operands itself. None blocks. Errors of all: DM_ERR_SHAPE, DM_ERR_OVERLAP (any other
 * overlap), DM_ERR_ARG (alpha, beta: not whole with integers alone). Cost: operands are read once and out written once;
 * what does not lie as out does is sent there, each element once. */

/* y = alpha * x + beta * y. x broadcasts to y. */
DM_API DM_CHECKED dm_status dm_axpby(dm_session *session, double alpha, dm_array x, double beta, dm_array y);
/* out = alpha * a + beta * b. */
DM_API DM_CHECKED dm_status dm_add(dm_session *session, double alpha, dm_array a, double beta, dm_array b,
                                   dm_array out);
/* out = alpha * a * b. */
DM_API DM_CHECKED dm_status dm_multiply(dm_session *session, double alpha, dm_array a, dm_array b, dm_array out);
/* out = alpha * a. */
DM_API DM_CHECKED dm_status dm_scale(dm_session *session, double alpha, dm_array a, dm_array out);
/* All other elementwise functions are in <dmath/ewise.h>, which this header includes below. */

/* What a name in an expression stands for. Make one with DM_ARG, DM_NUMBER or DM_INTEGER. */
enum { DM_MAP_ARRAY = 0, DM_MAP_NUMBER = 1, DM_MAP_INTEGER = 2 };
typedef struct dm_map_arg {
    const char *name; /* a C identifier of at most 63 characters */
    dm_array array;
    int kind;         /* DM_MAP_* */
    double number;    /* DM_MAP_NUMBER */
    int64_t integer;  /* DM_MAP_INTEGER */
} dm_map_arg;
#define DM_ARG(name, array) {(name), (array), DM_MAP_ARRAY, 0, 0}
#define DM_NUMBER(name, value) {(name), {0}, DM_MAP_NUMBER, (value), 0}
#define DM_INTEGER(name, value) {(name), {0}, DM_MAP_INTEGER, 0, (value)}

/* out = expression, element by element, in one pass over memory:
 *     dm_map(s, "where(x > 0, a * x + y, 0)", 3, (dm_map_arg[]){DM_ARG("x", x), DM_ARG("y", y), DM_NUMBER("a", 2)}, out)
 * Operators, precedence and types are NumPy's: + - * / // % ** << >> & ^ | ~ < <= > >= == !=, parentheses, numbers, pi,
 * inf, nan, True, False, the functions of <dmath/ewise.h> and NumPy's names for them, and casts by the name of a type:
 * f32(x). Comparisons are not chained. "name = " may stand before it; where name is that of an array, out must be that
 * array. uniform(seed) and normal(seed) are the numbers of dm_fill_uniform (0 to 1) and dm_fill_normal (mean 0,
 * deviation 1) of an array of the elements' shape: of f32 where out is f32 or a shorter float, else of f64. index(dim)
 * is the index of the element along a dim, a number in the text; negative ones count from the end. The outermost
 * function may be a reduction, in the same pass: "sum(x * y)", "max(abs(x - y), 1)". Whole numbers behind its operand
 * are the dims to reduce over, negative ones from the end; none: all. Reductions: sum, mean, prod, min, max, any, all,
 * count_nonzero, argmin, argmax, logsumexp, var and std with correction 0, as <dmath/reduce.h> has them.
 * docs/expressions.md has the grammar and all rules.
 *
 * Shapes: each array must be used, and broadcasts to out, which may be one of them itself. In a reduction the arrays
 * broadcast to one another; out has their shape without those dims, or with 1 in their place, and is none of them.
 * Types: arrays promote as NumPy's promote_types does. Numbers, of the text or given, take the type of the arrays that
 * they meet; a float beside integers makes f64; an integer must fit. f16, bf16 and 8-bit floats are computed in f32 and
 * rounded at the end, or by a cast. The result is converted to out's dtype as dm_copy does.
 *
 * Does not block. Errors: DM_ERR_ARG the text is not understood (the message shows where), a name is unknown, given
 * twice or not used, or the expression is longer than 64 steps, 11 arrays and random numbers, 16 numbers (each dim of
 * index counts as two); DM_ERR_DTYPE a function does not take such operands; DM_ERR_UNSUPPORTED a reduction that is not
 * outermost; DM_ERR_SHAPE, DM_ERR_OVERLAP. Cost: every array is read once and out written once. Arrays that lie as out
 * does are read in place; of others each worker is sent what it lacks. uniform, normal and index are made in the pass.
 * The text is read at every call (microseconds); a plan is made once for a text, types, shapes and layouts, whatever
 * the numbers are. */
DM_API DM_CHECKED dm_status dm_map(dm_session *session, const char *expression, int count, const dm_map_arg *args,
                                   dm_array out);
/* The same into a new array of the expression's type and the shape that its arrays broadcast to; of a reduction without
 * the reduced dims. layout NULL: that of the first array given that has this shape and is no view (not for reductions),
 * else the default. The caller destroys the array. Errors: as dm_map and dm_array_create. */
DM_API DM_CHECKED dm_status dm_map_new(dm_session *session, const char *expression, int count, const dm_map_arg *args,
                                       const dm_layout *layout, dm_array *out);

/* ---- reductions ------------------------------------------------------------------------------------------ */

/* out = scale * (sum of x over dims[ndims]) + beta * out. ndims 0 with dims NULL: over all dims. beta == 0: out
 * is not read. x is read even if scale is 0. The sum of no elements is 0. Replicas of out agree to the last
 * bit. out: x's shape without those dims, or with 1 in their place; x and out may not overlap. Types: any two,
 * but for a complex x and a bool out; if both are integers, scale and beta must be whole. Accumulates f64 in
 * double-double, the other floats in f64, complex types part by part, integers and bool in 64 bits (wraps).
 * A sum of f64 beyond the range on the way does not matter: what scale, beta and out's type make of the whole
 * sum is Inf only if it is beyond the range itself, or if an element is Inf. Elements Inf and -Inf, or NaN,
 * give NaN. Does not block. Errors: DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_OVERLAP, DM_ERR_ARG (dims, ndims; scale,
 * beta). Cost: one addition per element of x. If P workers have addends, they send at least (P-1) n values in
 * all, n the elements of out: 8 bytes each (16 for f64), or elements of x if each worker has one addend. Sums
 * of integers, of layouts that are not explicit, have 1, 2 or 4 bytes where these hold any sum of so many
 * elements of x's type as a worker has. Nothing moves if the summed dims are not split and out lies as x does.
 * Sum of gradients: x is (P, n), a row on each of P workers, dims is 0, and out (n) has a replica on all of
 * them; each worker sends 2 (P-1)/P n elements, (P-1) n if n is small. */
DM_API DM_CHECKED dm_status dm_sum(dm_session *session, dm_array x, const int *dims, int ndims, double scale,
                                   double beta, dm_array out);

/* out = the sum of x over dim `dim`, from 0: dm_sum of that dim with scale 1 and beta 0. Errors: as dm_sum, DM_ERR_ARG
 * (dim). */
DM_API DM_CHECKED dm_status dm_sum_dim(dm_session *session, dm_array x, int dim, dm_array out);
/* All other reductions are in <dmath/reduce.h>, which this header includes below. */

/* ---- products -------------------------------------------------------------------------------------------- */

enum { DM_N = 0, DM_T = 1, DM_C = 2 };

/* c = alpha * op(a) * op(b) + beta * c; op(a): m x k, op(b): k x n, c: m x n, each a matrix or its transpose (trans_a,
 * trans_b: DM_N or DM_T; DM_C: the transpose's conjugate, of a real matrix its transpose). beta == 0: c is not read.
 * alpha == 0: a and b are not read. Replicas of c agree to the last bit.
 *
 * Vectors: a may be a row (k), b a column (k). c lacks the dim of a vector: it is (n), (m), or without dims. Transposes
 * of vectors have no effect, nor do conjugates. Stacks: dims before the last two number matrices. Those of a and b are
 * broadcast, as in NumPy's matmul, to those of c. c may overlap neither a nor b.
 *
 * Types: f64, f32, f16, bf16, mixed freely, and f8e4m3 and f8e5m2 for a and b: computed in f64 if any operand is f64,
 * else in f32; a 16-bit c is rounded once. Products of two 8-bit operands use the matrix units of GPUs that have such,
 * whose sums may have fewer bits than f32 on the way; with beta they are rounded to a 16-bit c before beta * c is
 * added. Complex types too, with real a or b; c is complex if a or b is.
 *
 * Does not block. Errors: DM_ERR_SHAPE, DM_ERR_DTYPE (other types), DM_ERR_OVERLAP, DM_ERR_ARG (trans_a, trans_b),
 * DM_ERR_LIMIT (memory_limit leaves no room for the workspace), DM_ERR_UNSUPPORTED (the forced algorithm cannot serve
 * the layouts or types).
 *
 * Costs: 2mnk flops for each matrix of a stack, of complex types four times as many. The workers that hold c compute
 * it. Where less than a quarter of the bytes moves if a or b stays, as beside a short vector, the product is made
 * where that matrix lies, and sent to c; the workspace then has it too. Into each of P workers move at least (P-1)/P
 * of a or b if c and the other are split alike in one dim; (P-1)/P of c if a and b are split alike along k; ((Q-1) mk
 * + (R-1) kn)/P elements on a grid of R x Q workers. For stacks each worker fetches the matrices of a and b that its
 * region of c needs, with all of k: none if the leading dims are split alike. On GPUs, and on CPUs of several hosts, a
 * moving operand stays on all workers as a cached replica (option replicas); the next product with it may differ in
 * the last bits.
 *
 * Algorithms: with several GPUs chosen by estimated time, from rates measured at the start, else by bytes moved. Option
 * gemm_algorithm forces one for all products of a session: cyclic; two_block (cyclic with two receive buffers); ring
 * (cyclic from neighbour to neighbour, for several hosts); stationary (c stays); contract (partial products, added up
 * where c is); panels (an operand arrives in panels with all of k); fused (one kernel multiplies while operands arrive:
 * Hopper GPUs, 16-bit operands). Algorithms that need more bytes in flight than option gemm_workspace, or than
 * memory_limit leaves, are not chosen (a temporary of another type than c is not counted). Source: the cyclic algorithm
 * follows Eliuk et al., dMath (2016), a variant of Fox, Otto & Hey (1987). */
DM_API DM_CHECKED dm_status dm_gemm(dm_session *session, int trans_a, int trans_b, double alpha, dm_array a, dm_array b,
                                    double beta, dm_array c);

/* c = a * b: dm_gemm without transposes, alpha 1, beta 0. All else as there. */
DM_API DM_CHECKED dm_status dm_matmul(dm_session *session, dm_array a, dm_array b, dm_array c);

/* What a product that is computed in f32 makes of its operands. F32: takes them as they are. TF32: GPUs may round
 * them to 10 bits behind the point for their tensor cores (range and sums are f32's). CPUs, which have no such units,
 * compute in f32 all the same, which is at least as exact. Products in f64, and of two 16-bit operands, are not
 * touched by it. DEFAULT: what the option gemm_compute says, which is f32 unless set. */
enum { DM_COMPUTE_DEFAULT = 0, DM_COMPUTE_F32 = 1, DM_COMPUTE_TF32 = 2 };

/* Make one with DM_GEMM_OPTIONS_INIT, then set fields. */
typedef struct dm_gemm_options {
    size_t size; /* sizeof(dm_gemm_options): set by DM_GEMM_OPTIONS_INIT */
    int compute; /* DM_COMPUTE_* */
} dm_gemm_options;
#define DM_GEMM_OPTIONS_INIT {sizeof(dm_gemm_options), DM_COMPUTE_DEFAULT}

/* dm_gemm with options; NULL: none. Errors: as dm_gemm, and DM_ERR_ARG where an option has no such value. */
DM_API DM_CHECKED dm_status dm_gemm_with(dm_session *session, int trans_a, int trans_b, double alpha, dm_array a,
                                         dm_array b, double beta, dm_array c, const dm_gemm_options *options);

/* ---- operations of your own ------------------------------------------------------------------------------ */

/* A user function, run by every worker on its shards: post-processing, generation, statistics, anything that
 * needs no data of other workers. */

/* One rectangle of an array, as it lies in a worker's memory. */
typedef struct dm_block {
    /* its first element (f16 and bf16 as uint16_t); always in host memory: on a GPU a copy of the rectangle,
     * copied back if it may be written */
    void *data;
    dm_dtype dtype;
    int ndim;
    int64_t start[DM_MAX_DIMS];  /* index of the first element in the array (or view) given to dm_apply */
    int64_t extent[DM_MAX_DIMS];
    int64_t stride[DM_MAX_DIMS]; /* elements from one index to the next, a dim */
} dm_block;

enum { DM_READ = 1, DM_WRITE = 2, DM_READWRITE = 3, DM_TASK_OPERANDS = 4, DM_APPLY_OPERANDS = 8 };

typedef struct dm_task {
    size_t size;
    int worker, workers;      /* this worker's number, and how many there are */
    const void *args;         /* a copy of what dm_apply was given */
    int64_t args_bytes;
    int count;                /* operands */
    const dm_block *block[DM_TASK_OPERANDS]; /* of the first four operands, [blocks[i]] each */
    int64_t blocks[DM_TASK_OPERANDS];        /* 0 where this worker holds nothing of it */
    const dm_block *const *operand;          /* [count] the same of all operands, */
    const int64_t *operand_blocks;           /* [count] and how many */
    int gpu;                                 /* not 0: this worker's device is a GPU, and data are copies */
} dm_task;

/* 0: well. Anything else fails the command as any failure on a worker does, with DM_ERR_TASK and this number.
 * Runs on a thread of the library; may call nothing of dmath but what begins with dm_task_. */
typedef int (*dm_task_function)(const dm_task *task);
/* For use inside such a function, with the task it was given: the command fails, whatever the function returns, and the
 * text (printf's format; at most 255 characters; the first of several) is in the error's message. Returns 1:
 *     return dm_task_fail(task, "row %d is negative", row); */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
DM_API int dm_task_fail(const dm_task *task, const char *format, ...);

/* A GPU can fetch bytes from memory of the process itself, so that a function need not copy them to where its
 * operands lie. These three are for use inside such a function, by any of its threads; where the worker has no
 * GPU they return 0.
 *
 * When the function has returned, this worker's GPU is made to read these bytes: memory, or the pages of a
 * mapped file, also where they may only be read. Returns 1, or 2 if the GPU reads them already, which a later
 * function may ask; 0: 32 pieces are mapped, or memory is NULL or bytes not positive. Where it cannot be done
 * the option log=info says why. They are held in memory (pages of a file in /dev/shm: 0.35 s a GiB) and must
 * stay as they are until the command of a function has ended in which dm_task_unmap returned 1 for the same
 * address. */
DM_API int dm_task_map(const dm_task *task, const void *memory, int64_t bytes);
/* When the function has returned, the GPU fetches `bytes` bytes at `from`, in place of those at `to`, which lie
 * together in a rectangle that the function may write. `from` lies in memory of which dm_task_map answers 2.
 * Returns 1; 0: the function must write them. Fetches of one function may not overlap. Cost: a piece takes the
 * GPU about a microsecond beside its bytes, so fetch rows of 50 KB and more. */
DM_API int dm_task_fetch(const dm_task *task, void *to, const void *from, int64_t bytes);
/* The GPU reads the memory no more when the command of the function has ended. Returns 1; 0: no memory is
 * mapped at that address. */
DM_API int dm_task_unmap(const dm_task *task, const void *memory);

/* Makes the function known under a name (1 to 63 characters, new, copied; at most 256). Before dm_init, in the same
 * order on all ranks: ranks that register other names refuse to meet (DM_ERR_VERSION, with the names). Either the
 * program registers its functions itself and runs on all ranks; or they are in a shared object with a function `void
 * dmath_ops(void)` that registers them, which dm_init loads and calls on every rank whose option `load`
 * (DMATH_LOAD=a.so:b.so) names it, and `dmath-worker --load a.so` too. The program is linked with the shared libdmath
 * then. Does not block. Errors: DM_ERR_ARG, DM_ERR_STATE (a session is open); those of a call inside dmath_ops are
 * dm_init's too. Names with `dmath.` in front are for dmath's libraries: ranks that lack one do nothing for it. */
DM_API DM_CHECKED dm_status dm_register(const char *name, dm_task_function function);

/* Runs it once on every worker, or between dm_group_begin and dm_group_end on every worker of the group and on
 * those that hold a part of an array. modes[i]: what it does with arrays[i]: DM_READ, DM_WRITE (overwrites all
 * of it) or DM_READWRITE; an array that is written may overlap no other. Each replica is handed out at its
 * worker, and all must be written alike. task->block lists the largest rectangles that lie together, in
 * increasing order, the last dim fastest. Arrays of one shape have the same rectangles in the same order;
 * arrays of other shapes may have any. Workers that are threads call the function at the same time. Types: any.
 * Does not block. args is copied. Errors: DM_ERR_ARG (an unknown name, a bad mode, more than DM_APPLY_OPERANDS
 * arrays or 64 KiB of args); DM_ERR_OVERLAP; DM_ERR_LAYOUT (arrays of one shape of which a worker has not the
 * same rectangles: dm_apply_with can help); DM_ERR_UNSUPPORTED (in a group, of a session of more than 64
 * workers). A non-zero result of the function comes as DM_ERR_TASK from the next call that waits. Cost: nothing
 * is sent; on GPUs each array is copied to pinned host memory, unless the function overwrites it and it lies in
 * one piece, and back if it is written. */
DM_API DM_CHECKED dm_status dm_apply(dm_session *session, const char *name, int count, const dm_array *arrays,
                                     const int *modes, const void *args, int64_t args_bytes);

/* Make one with DM_APPLY_OPTIONS_INIT, then set fields. */
typedef struct dm_apply_options {
    size_t size;    /* sizeof(dm_apply_options): set by DM_APPLY_OPTIONS_INIT */
    int align;      /* not 0: arrays of arrays[0]'s shape are handed out in the layout of arrays[0] */
    int whole_rows; /* not 0: of every array only dim 0 is split; all other dims are whole in every rectangle */
    int early; /* not 0: on GPUs it runs when its arrays allow, beside what was called before and touches others
                */
} dm_apply_options;
#define DM_APPLY_OPTIONS_INIT                                                                                  \
    {                                                                                                          \
        sizeof(dm_apply_options), 0, 0, 0                                                                      \
    }

/* dm_apply on arrays that do not lie as an option asks: they are handed out as temporaries that do, copied
 * there before if they are read and back afterwards if they are written. whole_rows takes dm_layout_rows for
 * them; align takes the layout that arrays[0] is handed out in (of a rectangle of another array: that of
 * dm_array_like). early is for functions that bring data while others compute: give two of them an array that
 * both write where they are to keep their order. options NULL: none. Errors: as dm_apply, and DM_ERR_ARG
 * (options), DM_ERR_LIMIT (temporaries). Cost: what dm_copy between the layouts moves; an array that lies right
 * already is not copied. */
DM_API DM_CHECKED dm_status dm_apply_with(dm_session *session, const char *name, int count, const dm_array *arrays,
                                          const int *modes, const void *args, int64_t args_bytes,
                                          const dm_apply_options *options);

/* ---- looking inside -------------------------------------------------------------------------------------- */

/* Between these two, calls on arrays are planned for every worker but not run; the text lists for each call its
 * algorithm, steps, bytes sent and received by each worker, workspace and flops, and what it sends to whom. Of a program
 * also for each of its calls (of a part of it, where it has loops) kernels, payloads, bytes and flops of all workers.
 * Create, destroy, view and reshape take effect. Neither blocks. *text is the caller's, for free(). Errors:
 * DM_ERR_STATE (begin: it has begun, or a program is being recorded; end: it has not), DM_ERR_ARG (text). Cost:
 * a plan for each worker at every call. */
DM_API DM_CHECKED dm_status dm_explain_begin(dm_session *session);
DM_API DM_CHECKED dm_status dm_explain_end(dm_session *session, char **text);

/* What a worker has done since the session began. Blocks as dm_sync. Errors: DM_ERR_ARG (worker), those of dm_sync. */
typedef struct dm_counters {
    size_t size; /* set by the caller: sizeof(dm_counters) */
    int64_t commands, steps;
    int64_t bytes_sent, bytes_received; /* to and from other workers and the master, payload */
    int64_t messages_sent, messages_received;
    int64_t flops;                      /* of products and solves, on real numbers: 2mnk, of complex types 8mnk */
    int64_t workspace_peak_bytes;       /* largest workspace of one command */
    int64_t plans_made, plans_reused;   /* of commands; a program is planned once, when it is recorded */
} dm_counters;
DM_API DM_CHECKED dm_status dm_counters_get(dm_session *session, int worker, dm_counters *out);
/* sent[w] = the bytes that the worker has sent to worker w since the session began, payload; sent[dm_workers()]
 * = to the master: dm_workers() + 1 numbers, whose sum is bytes_sent of dm_counters_get. The numbers for worker
 * w, of all workers, are what it has received from workers. Plans' numbers are in the text of dm_explain_end.
 * sent is the caller's. Blocks as dm_sync. Errors: DM_ERR_ARG (worker, sent), those of dm_sync. Cost: nothing
 * is sent. */
DM_API DM_CHECKED dm_status dm_links_get(dm_session *session, int worker, int64_t *sent);

/* Memory of a worker by owner, in bytes after rounding. Blocks as dm_sync. Errors: DM_ERR_ARG (worker), those of
 * dm_sync. */
typedef struct dm_memory {
    size_t size; /* set by the caller: sizeof(dm_memory) */
    int64_t arrays, workspace, replicas, staging; /* live now */
    int64_t peak;        /* highest sum of the above so far */
    int64_t held;        /* slabs held from the system */
    int64_t system_calls; /* how often the system was asked for memory */
    int64_t limit;       /* 0: none */
} dm_memory;
DM_API DM_CHECKED dm_status dm_memory_report(dm_session *session, int worker, dm_memory *out);
/* Gives unused slabs back to the system. Workers give back such slabs by themselves when memory runs out, but for those
 * that other processes have mapped: for them this call is needed. Blocks until all commands before it are done (as
 * dm_sync), so that nobody works with a mapping of them. Errors: those of dm_sync. Cost: later commands ask the system
 * anew. */
DM_API DM_CHECKED dm_status dm_memory_trim(dm_session *session);

#ifdef __cplusplus
}
#endif

/* ---- types of pointers ----------------------------------------------------------------------------------- */

/* The dtype of the elements that a pointer leads to, const or not. uint16_t is DM_F16 here, and stands for bf16 and u16
 * too, as uint8_t, which is DM_U8, does for the 8-bit floats and bool. DM_NUMBER_OF does not take uint16_t. */
#if defined(__cplusplus)
#define DM_DTYPE_OF(pointer) (dm_dtype_of(pointer))
#define DM_NUMBER_OF(pointer) (dm_number_of(pointer))
#define DM_OVERLOAD(ctype, code) static inline dm_dtype dm_number_of(const ctype *) { return (code); }
DM_OVERLOAD(double, DM_F64)
DM_OVERLOAD(float, DM_F32)
DM_OVERLOAD(dm_c64, DM_C64)
DM_OVERLOAD(dm_c128, DM_C128)
DM_OVERLOAD(bool, DM_BOOL)
DM_OVERLOAD(signed char, DM_I8)
DM_OVERLOAD(unsigned char, DM_U8)
DM_OVERLOAD(short, DM_I16)
DM_OVERLOAD(int, DM_I32)
DM_OVERLOAD(unsigned, DM_U32)
DM_OVERLOAD(long, sizeof(long) == 8 ? DM_I64 : DM_I32)
DM_OVERLOAD(unsigned long, sizeof(long) == 8 ? DM_U64 : DM_U32)
DM_OVERLOAD(long long, DM_I64)
DM_OVERLOAD(unsigned long long, DM_U64)
#undef DM_OVERLOAD
template <typename T> static inline dm_dtype dm_dtype_of(const T *pointer) { return dm_number_of(pointer); }
static inline dm_dtype dm_dtype_of(const uint16_t *) { return DM_F16; }
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DM_EITHER(ctype, code) ctype * : (code), const ctype * : (code)
#define DM_NUMBERS                                                                                             \
    DM_EITHER(double, DM_F64), DM_EITHER(float, DM_F32), DM_EITHER(dm_c64, DM_C64),                            \
        DM_EITHER(dm_c128, DM_C128), DM_EITHER(_Bool, DM_BOOL), DM_EITHER(signed char, DM_I8),                 \
        DM_EITHER(unsigned char, DM_U8), DM_EITHER(short, DM_I16), DM_EITHER(int, DM_I32),                     \
        DM_EITHER(unsigned, DM_U32), DM_EITHER(long, sizeof(long) == 8 ? DM_I64 : DM_I32),                     \
        DM_EITHER(unsigned long, sizeof(long) == 8 ? DM_U64 : DM_U32), DM_EITHER(long long, DM_I64),           \
        DM_EITHER(unsigned long long, DM_U64)
#define DM_DTYPE_OF(pointer) _Generic((pointer) + 0, DM_NUMBERS, DM_EITHER(uint16_t, DM_F16))
#define DM_NUMBER_OF(pointer) _Generic((pointer) + 0, DM_NUMBERS)
#endif

#include <dmath/control.h>
#include <dmath/checkpoint.h>
#include <dmath/ewise.h>
#include <dmath/order.h>
#include <dmath/layers.h>
#include <dmath/factors.h>
#include <dmath/index.h>
#include <dmath/linalg.h>
#include <dmath/reduce.h>
#include <dmath/group.h>
#include <dmath/program.h>
#include <dmath/feed.h>
#include <dmath/profile.h>
#include <dmath/random.h>
#include <dmath/require.h>

#endif
