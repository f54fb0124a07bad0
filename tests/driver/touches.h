/* What test_ops does besides, if asked. With DMATH_TEST_TOUCHES set, every kernel that runs on CPUs is compared with the bytes
 * that its row of the table says it touches. With DMATH_TEST_PAPER set, every planned call is simulated. "all": as below. */
#ifndef DMT_TOUCHES_H
#define DMT_TOUCHES_H

/* Prints what was found. all: each kernel must have run, and each of its references must have been of consequence.
 * Returns how many complaints there are. */
int dmt_touches_end(int all);
/* The same of calls on paper; all: each op must have been planned. */
int dmt_paper_end(int all);

#endif
