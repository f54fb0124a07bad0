/* Calls with bad arguments: what they may answer, and arrays that they must leave as they are. */
#ifndef DMT_REFUSAL_H
#define DMT_REFUSAL_H

#include "support/cases.h"

/* Statuses that may come: DMT_ONE(ARG) | DMT_ONE(SHAPE). */
#define DMT_ONE(name) (1u << DM_ERR_##name)
/* word: the argument that the message must name, or NULL. Complaints are counted; the case fails at its end. */
void dmt_refused(dmt_case *c, dm_status got, unsigned wanted, const char *word, const char *call);
#define REFUSED(wanted, word, call) dmt_refused(c, (call), (wanted), (word), #call)

/* Arrays to go wrong with, each filled with 1, 2, 3, ... */
typedef struct dmt_things {
    dm_array f, g;  /* f32 6 x 5 */
    dm_array wide;  /* f32 6 x 7 */
    dm_array row;   /* f32 5 */
    dm_array whole; /* i32 6 x 5 */
    dm_array byte;  /* u8 6 x 5 */
    dm_array cube;  /* f64 2 x 3 x 4 */
} dmt_things;
dmt_things dmt_things_make(dmt_case *c);
/* All are what they were; destroys them. */
void dmt_things_end(dmt_case *c, dmt_things *t);
dm_array dmt_thing_make(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape);
void dmt_thing_end(dmt_case *c, dm_array a, dm_dtype dtype, int ndim, const int64_t *shape);

/* The cmocka test of a case function, on 3 workers. */
#define DMT_ONE_CASE(fn_name)                                                                                  \
    static void test_##fn_name(void **state)                                                                   \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = #fn_name, .cases = 1, .fn = fn_name, .workers = 3, .each = true});        \
    }

#endif
