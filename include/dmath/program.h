/* dmath: programs: sequences of calls that run as one command.  BSD-3-Clause, see LICENSE.
 *
 * Between dm_program_begin and dm_program_end, calls are checked and recorded, and do not run. dm_program_run
 * then runs them all. The result is that of the calls one by one, to the last bit, but for products that a
 * cached replica would serve (dm_gemm). A program is planned once, its run is one command, and arrays that live
 * only in it are workspace, which shares memory where lifetimes allow. Calls can be repeated inside
 * (dm_program_repeat).
 *
 *     dm_program_begin(s);
 *     dm_matmul(s, a, p, q);                        -- recorded
 *     dm_map(s, "x + alpha * p", ...);              -- recorded
 *     dm_program_end(s, &step);
 *     dm_program_run(s, step, 100, 0, NULL);        -- runs both, 100 times
 *
 * What can be recorded: every call that queues a command (copies, fills, elementwise functions, reductions,
 * products, functions of the user by dm_apply, and what is made of them), up to 65534 of them (then
 * DM_ERR_LIMIT). Calls that move data to or from the program or a file (dm_array_read, dm_array_write, dm_item,
 * dm_array_load, dm_array_save) are DM_ERR_STATE; dm_array_feed (<dmath/feed.h>) brings data into a program.
 * Numbers, such as alpha, are recorded with their values; a number that changes between runs is one of
 * dm_program_number, or an element of an array. Layouts, views and arrays may be made and destroyed at any
 * time. Arrays made inside and destroyed inside are temporaries. Arrays made inside and still alive at the end
 * are ordinary arrays from then on. An array made before cannot be destroyed inside, and a scope opened before
 * cannot end inside.
 *
 * Elementwise calls that follow one another, on arrays of one shape and layout, run as one where they depend on one another
 * or read the same array: in one pass over memory, without storing what only the next one reads (option program_join).
 *
 * A failure poisons what the program writes. Its message names the call by its number among the recorded ones,
 * and in a loop the pass of the innermost one. After it, or after a cancel (dm_cancel), runs and passes of
 * loops that are left may be dropped: the workers ask one another every so many passes whether to go on.
 * dm_counters, dm_explain_begin, the timeline and messages count a run as one command, called program. Cached
 * replicas (option replicas) take no part.
 *
 * No call of this header blocks, but as with all calls: where the command ring (option ring) is full, it waits
 * until the slowest worker has read on. A worker reads on between commands, not while it is in a long run
 * (dm_program_run, run_until), whose workers may so hold up what is given to others after it. A larger ring has
 * room for more. */
#ifndef DMATH_PROGRAM_H
#define DMATH_PROGRAM_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Programs belong to their session, and end with it at the latest. */
typedef struct dm_program {
    uint64_t id;
} dm_program;

/* Starts to record. Errors: DM_ERR_STATE (a program is being recorded; between dm_explain_begin and dm_explain_end). */
DM_API DM_CHECKED dm_status dm_program_begin(dm_session *session);
/* From here to the end of the recording, the seeds of random calls (fills, uniform() and normal() of
 * expressions, stochastic pooling) advance: in run number r of the program, where a call was recorded with
 * `seed`, it takes dm_program_seed(seed, r). Runs are counted from 0, over all calls that run the program;
 * those that are dropped after a failure or a cancel do not count (dm_program_set_run sets the number of the
 * next). Without it every run makes the same numbers. Errors: DM_ERR_STATE (nothing is being recorded). */
DM_API DM_CHECKED dm_status dm_program_advance_seeds(dm_session *session);
/* The seed of run number `run`: `seed` itself in run 0. */
DM_API uint64_t dm_program_seed(uint64_t seed, int64_t run);
/* Makes a number of the program, which can be given anew before each run: an array of one element (no dims) of this
 * type, with a copy on every worker of the session, or of the group that has begun. Calls that are recorded take it as
 * any such array: as a factor (dm_element), or in an expression (DM_ARG):
 *     dm_program_number(s, "rate", DM_F32, 0.1, &rate);
 *     dm_axpby_by(s, dm_element(rate), g, dm_value(1), w);    -- recorded
 *     ...
 *     dm_program_set_number(s, step, "rate", 0.01);           -- from the next run on
 * Every run begins with the number; a call may write the array, which the next run does not see. What a plan depends on
 * cannot be such a number: calls take it as a plain argument. name: 1 to 63 characters, copied. The array ends with the
 * recording, or when it is destroyed before. Errors: DM_ERR_STATE (nothing is being recorded); DM_ERR_ARG (name is
 * NULL, too long, or another number has it; out is NULL; value is none of an integer type); DM_ERR_DTYPE. Cost: in each
 * run a small kernel on each worker, the same whether the number changes or not. */
DM_API DM_CHECKED dm_status dm_program_number(dm_session *session, const char *name, dm_dtype dtype, double value,
                                              dm_array *out);
/* Loops. The calls recorded from here to dm_program_repeat_end run `times` times in each run of the program,
 * one pass after the other; those up to dm_program_repeat_until until value < below, or value is NaN, but at
 * most `times` times. The workers repeat them, and look at value, without the master. Loops may lie in loops,
 * up to 16:
 *
 *     dm_program_begin(s);
 *     dm_program_repeat(s, 50);                            -- 50 steps in time,
 *     dm_program_repeat(s, 1000);                          -- in each of them sweeps
 *     ...                                                  -- that write `change`
 *     dm_program_repeat_until(s, 10, change, 1e-8);        -- until it is small; looked at after every 10th
 *     ...
 *     dm_program_repeat_end(s);
 *     dm_program_end(s, &simulation);
 *
 * The result is that of the calls one by one, in loops of the caller. What lies between two begins or ends of
 * loops is planned as one command; an array that several such parts use, or several passes, is no workspace but
 * memory as long as the program lives, even if it is destroyed inside. One that is made and destroyed between
 * two begins or ends is workspace. Seeds that advance do so with every
 * pass: in pass p of a loop, counted from 0 over all runs of the program, they are dm_program_seed(seed, p). A
 * pass that fails poisons value, and the run ends. times 0: the calls are recorded and do not run. Errors of
 * dm_program_repeat: DM_ERR_STATE (nothing is being recorded), DM_ERR_ARG (times < 0), DM_ERR_LIMIT (16 loops
 * are open). Cost of a pass: as of a run in a row of runs (dm_program_run). */
DM_API DM_CHECKED dm_status dm_program_repeat(dm_session *session, int64_t times);
/* Errors: DM_ERR_STATE (no loop has begun). */
DM_API DM_CHECKED dm_status dm_program_repeat_end(dm_session *session);
/* value: an array or view with one element of a real type, that the loop writes. every: passes between two
 * looks; their cost is that of dm_program_run_until. Errors: DM_ERR_STATE (no loop has begun); DM_ERR_HANDLE
 * (value); DM_ERR_ARG (every < 1, below is NaN, the loop does not write value); DM_ERR_SHAPE, DM_ERR_DTYPE
 * (value). After an error the loop is still open. */
DM_API DM_CHECKED dm_status dm_program_repeat_until(dm_session *session, int64_t every, dm_array value,
                                                    double below);
/* Ends the recording and plans it. out NULL: the recording is dropped; what was recorded never runs. On failure
 * it is dropped too. Errors: DM_ERR_STATE (nothing is being recorded; a loop is open; an array made inside was
 * destroyed, but a view of it is alive); DM_ERR_UNSUPPORTED (an option forces an algorithm that cannot serve a
 * call); DM_ERR_LIMIT (a run takes 16 bytes for each array and 32 for each number, loops take 64 for each
 * begin, each end and each part between; of either only a quarter of what the option ring says). Cost: the
 * calls go to the workers once. */
DM_API DM_CHECKED dm_status dm_program_end(dm_session *session, dm_program *out);

/* For one run: `array` takes the place of `recorded`. */
typedef struct dm_program_binding {
    dm_array recorded, array;
} dm_program_binding;

/* Runs the program `times` times, one run after the other. count bindings replace arrays that were there when
 * it was recorded; both must have one shape, type and layout (views: of the same part of such arrays). What the
 * program uses beside `recorded` of the same array (views, those that calls have made too) is replaced by the
 * same views of what `array` belongs to, where it has no binding of its own. Two arrays of the program that
 * belonged to one array when it was recorded, or did not, must do so, or not, now. Errors: DM_ERR_HANDLE
 * (program, or an array of it has been destroyed); DM_ERR_ARG (times, count; a `recorded` that the program does
 * not use, or that comes twice); DM_ERR_SHAPE, DM_ERR_DTYPE, DM_ERR_LAYOUT (also: what `array` belongs to has
 * not the memory for such views), DM_ERR_OVERLAP (bindings); DM_ERR_STATE (while recording); DM_ERR_LIMIT.
 * Cost: the master sends one frame whatever `times` is, and two small ones for each such view. */
DM_API DM_CHECKED dm_status dm_program_run(dm_session *session, dm_program program, int64_t times, int count,
                                           const dm_program_binding *bindings);
/* Runs the program until value < below, or value is NaN, but at most `most` times. The workers look at value
 * after every `every` runs, without the master. A program that must know how often it ran counts its runs
 * itself. A run that fails poisons value, and no further run begins. value: an array or view with one element
 * of a real type that the run writes, perhaps as a part of a larger array; where the program uses `value`
 * itself and a binding replaces it, its replacement is looked at. Errors: as dm_program_run; DM_ERR_HANDLE
 * (value); DM_ERR_ARG (most < 0, every < 1, below is NaN, a value that the run does not write), DM_ERR_SHAPE,
 * DM_ERR_DTYPE (value). Cost: a look waits for the runs before it and sends the element to every worker: on
 * CPUs some microseconds, on GPUs some ten. */
DM_API DM_CHECKED dm_status dm_program_run_until(dm_session *session, dm_program program, int64_t most, int64_t every,
                                                 dm_array value, double below, int count,
                                                 const dm_program_binding *bindings);
/* The next run of the program is number `next`, as where a loop is resumed. Errors: DM_ERR_HANDLE, DM_ERR_ARG
 * (next < 0), DM_ERR_STATE (while recording), DM_ERR_UNSUPPORTED (seeds advance in a loop that may end early,
 * so the run does not give them). Cost: nothing is sent. */
DM_API DM_CHECKED dm_status dm_program_set_run(dm_session *session, dm_program program, int64_t next);
/* From its next run on, the program's number `name` (dm_program_number) is value. Runs that were called before keep
 * theirs. Errors: DM_ERR_HANDLE; DM_ERR_ARG (the program has no such number; value is none of its type); DM_ERR_STATE
 * (while recording). Cost: none of its own: the frame of the next run carries the value, no plan is made. */
DM_API DM_CHECKED dm_status dm_program_set_number(dm_session *session, dm_program program, const char *name, double value);
/* Destroys the program, after the runs before it. A zero program is ignored. Errors: DM_ERR_HANDLE, DM_ERR_STATE (while
 * recording). */
DM_API DM_CHECKED dm_status dm_program_destroy(dm_session *session, dm_program program);

#ifdef __cplusplus
}
#endif

#endif
