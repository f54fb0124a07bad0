/* Runs a check over many cases: sessions of 1 to 8 workers, random layouts, shapes, views. A case is a function
 * of (DMATH_TEST_SEED, the suite's name, workers, case number) alone, so one that fails can be run by itself:
 *   DMATH_TEST_SEED=s DMATH_TEST_WORKERS=w DMATH_TEST_CASE=n DMATH_TEST_SUITE=name ./test_x
 * With DMATH_TEST_LAUNCHED=1 the session comes from the launcher (mpirun -n P+1 ./test_x) and has its P
 * workers. How many cases, and which: DMATH_TEST_CASES (a factor), DMATH_TEST_LISTS (a part of each list, all
 * by default) and DMATH_TEST_WINDOW (n: the n-th such part, and other random cases than windows 0 to n-1). */
#ifndef DMT_CASES_H
#define DMT_CASES_H

/* cmocka wants these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/layouts.h"

typedef struct dmt_case {
    dm_session *session;
    int workers;
    const char *suite;
    int64_t number;
    dmt_random random;
    dmt_scratch scratch;
    void *user;                   /* of the suite: counts what was skipped, say */
    struct dmt_operand *operands; /* destroyed at the end of the case */
    int wrong;                    /* complaints so far that did not end the case at once */
    char text[6000];              /* what the case is about, printed when it fails */
} dmt_case;

typedef struct dmt_suite {
    const char *name;
    int64_t cases; /* over all worker counts, before DMATH_TEST_CASES */
    void (*fn)(dmt_case *c);
    const char *options; /* of the sessions; such a suite is skipped when launched */
    int workers;         /* only with so many workers; 0: 1, 2, 3, 5 and 8 */
    bool each;           /* `cases` for every worker count: a list, see dmt_sweep_count */
    bool scope;          /* what a case makes ends with it */
    void *user;
} dmt_suite;

/* Returns the number of cases run. */
int64_t dmt_run(const dmt_suite *suite);
bool dmt_launched(void);
bool dmt_on_cpu(void); /* by DMATH_DEVICE and what there is: the workers have no GPUs */
/* For cmocka_run_group_tests: start prints the seed; finish ends the launched session. */
int dmt_start(void **state);
int dmt_finish(void **state);
/* Several groups share the launched session, which is opened here and ends with dmt_release. Not 0: that
 * failed. */
int dmt_hold(void);
int dmt_release(void);
/* A session of so many workers, or the launched one. Ending the launched one does nothing: it lives on. */
dm_session *dmt_session_open(int workers, const char *options);
void dmt_session_close(dm_session *session, int64_t alive);

/* Adds to the case's description. */
void dmt_say(dmt_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the description, how to repeat the case, and the reason; fails the test. */
_Noreturn void dmt_fail(dmt_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dmt_status_is(dmt_case *c, dm_status got, dm_status want, const char *call);
#define DMT_OK(c, call) dmt_status_is((c), (call), DM_OK, #call)
#define DMT_REFUSED(c, want, call) dmt_status_is((c), (call), (want), #call)

/* What all workers of the session have sent so far. */
int64_t dmt_bytes_sent(dmt_case *c);

/* An array, or a view of one, with what it should hold. */
typedef struct dmt_operand {
    struct dmt_operand *next;
    const char *name;
    dm_array array;  /* what the op is given */
    dmt_host *value; /* its elements; DMT_UNSET: of unknown contents */
    dm_array base;   /* the array that it is a view of, or itself */
    dmt_host *base_value;
    dm_array between;        /* the view that a view of a view is of, else DM_NO_ARRAY */
    int64_t lo[DM_MAX_DIMS], step[DM_MAX_DIMS]; /* where in base */
    bool view, reshaped, unset;
    dmt_layout layout;
} dmt_operand;

enum {
    DMT_NO_VIEW = 1, /* a whole array */
    DMT_UNSET = 2,   /* sometimes never written: for outputs that are not read */
    DMT_NO_STEPS = 4, /* views are rectangles */
};
/* Makes an array or a view with the elements of value, in a random layout. */
dmt_operand *dmt_operand_make(dmt_case *c, const char *name, const dmt_host *value, int flags);
/* A whole array in that layout (NULL: default); layout_text describes it. */
dmt_operand *dmt_operand_plain(dmt_case *c, const char *name, const dmt_host *value, const dm_layout *layout,
                               const char *layout_text);
/* The array's elements are within bound of want (see dmt_host_within); every replica's are the same; the
 * elements of the base outside the view are what they were. */
void dmt_operand_check(dmt_case *c, dmt_operand *o, const dmt_host *want, const dmt_host *bound);
/* The same, bit for bit. */
void dmt_operand_check_same(dmt_case *c, dmt_operand *o, const dmt_host *want);
void dmt_operand_unchanged(dmt_case *c, dmt_operand *o);
dmt_host *dmt_read(dmt_case *c, dm_array a, dm_dtype dtype, int ndim, const int64_t *shape);

/* Shapes: 0, 1, primes, up to 40 and sometimes 300 a dim; at most `most` elements. */
void dmt_shape_random(dmt_case *c, int ndim, int64_t most, int64_t *shape);
int64_t dmt_extent_random(dmt_case *c, int64_t most);
/* A random shape that broadcasts to that one; returns its ndim. */
int dmt_shape_narrowed(dmt_case *c, int ndim, const int64_t *shape, int64_t *narrowed);
dm_dtype dmt_dtype_random(dmt_case *c);
dm_dtype dmt_ewise_random(dmt_case *c); /* that elementwise ops take */
dm_dtype dmt_float_random(dmt_case *c);
/* 0, 1, -1, or a number; whole: a small whole one. */
double dmt_factor_random(dmt_case *c, bool whole);

#endif
