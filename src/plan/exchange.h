/* Exchange: packed rows go from every worker to every other, as many as a table says that all workers know.
 *
 * It serves ops whose data decide what moves: sort, take, put. Such an op is two commands. The first computes
 * how many rows each worker has for each other one. The master reads these counts, which blocks, and gives them
 * to the second command in its tail, as part of the plan key. Only the rows themselves move then, each once. */
#ifndef DMI_EXCHANGE_H
#define DMI_EXCHANGE_H

#include "plan/plan.h"

typedef struct dmi_exchange {
    const int64_t *rows; /* [workers * workers]: worker i has rows[i * workers + j] for worker j. In the plan,
                            or the call */
    bool back;           /* rows return by the same table: worker j sends so many to worker i */
    bool others;         /* rows that stay have their places in `from` and `to`, but are not copied */
    int64_t row_bytes;
    dmi_ref from; /* mode READ: rows of this worker, one after the other: those for worker 0, for worker 1, and
                     so on */
    dmi_ref to; /* mode WRITE: rows that come, one after the other: those of worker 0, of worker 1, and so on */
} dmi_exchange;

/* Rows that worker `me` gives to the workers before `to`, and rows that come to it from those before `from`;
 * both count those that stay. */
int64_t dmi_exchange_given(const dmi_exchange *x, int workers, int me, int to);
int64_t dmi_exchange_taken(const dmi_exchange *x, int workers, int me, int from);
/* Makes the steps of this worker: the copy of the rows that stay (but for `others`), pushes, expects, in rounds
 * as those of fetch.c. after: `to` may be written then; source: `from` is there; either may be NULL. done: the
 * mark of the arrival of everything. Counts and bytes must be checked before. */
void dmi_plan_exchange(dmi_builder *b, const dmi_exchange *x, const dmi_mark after, const dmi_mark source,
                       dmi_mark done);

#endif
