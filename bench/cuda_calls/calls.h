/* What the parts of bench_cuda_calls share. */
#ifndef CUDA_CALLS_H
#define CUDA_CALLS_H

#include <dmath/dmath.h>
#include <stdbool.h>
#include <stdint.h>

/* --- trace.c: calls of the CUDA runtime and driver, by whatever thread and library of this process ------ */
bool calls_watch(void); /* before the first call that is to be seen; false: told on stderr */
void calls_count(bool on); /* on: from zero */
typedef struct call_totals {
    int64_t calls, refused;
} call_totals;
/* A line for each function that was called, those that may not be called marked. */
call_totals calls_print(int rounds);
/* How often functions whose name begins so were called. */
int64_t calls_of(const char *beginning);

/* --- rules.c -------------------------------------------------------------------------------------------- */
/* Does this function allocate, free, make or load something, or let the host wait? Such calls have no place
 * where commands come again that came before. Names as CUPTI has them: cudaMalloc_v3020, cuMemAlloc_v2. */
bool call_refused(const char *name);

/* --- work.c --------------------------------------------------------------------------------------------- */
typedef struct calls_work calls_work;
calls_work *work_make(dm_session *s, int64_t n);
/* Products of three layouts, in two types, a transposition and other changes of layout, sums, a chain of
 * elementwise calls, an array that comes and goes, and one number read by the master; waits for all of it. */
void work_round(calls_work *w);
void work_free(calls_work *w);
void work_check(dm_status status); /* ends the program where a call has failed */

#endif
