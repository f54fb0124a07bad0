/* A small generator for the tests: the same numbers on every machine, for a seed that is printed. */
#ifndef DMT_RANDOM_H
#define DMT_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dmt_random {
    uint64_t state[4];
} dmt_random;

/* DMATH_TEST_SEED, or a fixed number. */
uint64_t dmt_seed(void);
/* `usual` times DMATH_TEST_CASES (a factor, default 1), at least 1. */
int64_t dmt_case_count(int64_t usual);
/* The whole of a list of cases; where DMATH_TEST_CASES is below 0.01, as under compute-sanitizer, a hundred
 * times that part of it, at least 100. Of that the part DMATH_TEST_LISTS (default 1). */
int64_t dmt_sweep_count(int64_t whole);

void dmt_random_start(dmt_random *r, uint64_t seed);
/* A seed for case `number` of the test `name`, so that any case can be run on its own. */
uint64_t dmt_seed_of(const char *name, int64_t workers, int64_t number);
uint64_t dmt_bits(dmt_random *r);
/* Both ends included. */
int64_t dmt_int(dmt_random *r, int64_t lo, int64_t hi);
/* In [0, 1). */
double dmt_unit(dmt_random *r);
bool dmt_chance(dmt_random *r, int percent);
/* A random order of 0 .. count-1. */
void dmt_shuffle(dmt_random *r, int count, int *order);

#endif
