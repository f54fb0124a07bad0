#include "support/random.h"

#include <math.h>
#include <stdlib.h>

static const uint64_t default_seed = 20240611;

uint64_t dmt_seed(void)
{
    const char *text = getenv("DMATH_TEST_SEED");
    return text && *text ? strtoull(text, NULL, 0) : default_seed;
}

static double factor(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtod(text, NULL) : otherwise;
}

int64_t dmt_case_count(int64_t usual)
{
    int64_t count = (int64_t)((double)usual * factor("DMATH_TEST_CASES", 1));
    return count < 1 ? 1 : count;
}

int64_t dmt_sweep_count(int64_t whole)
{
    double few = 100 * factor("DMATH_TEST_CASES", 1);
    int64_t part = (int64_t)((double)whole * (few < 1 ? few : 1));
    part = part < 100 ? 100 : part;
    part = part < whole ? part : whole;
    part = (int64_t)ceil((double)part * factor("DMATH_TEST_LISTS", 1));
    return part < 1 ? 1 : part < whole ? part : whole;
}

/* One step of splitmix64: spreads seeds that differ in a bit over all bits. */
static uint64_t split(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void dmt_random_start(dmt_random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        r->state[i] = split(&seed);
    }
}

uint64_t dmt_seed_of(const char *name, int64_t workers, int64_t number)
{
    uint64_t state = dmt_seed();
    for (; *name; name++) {
        state = split(&state) ^ (uint64_t)(unsigned char)*name;
    }
    state = split(&state) ^ (uint64_t)workers;
    state = split(&state) ^ (uint64_t)number;
    return split(&state);
}

static uint64_t rotate(uint64_t v, int by)
{
    return (v << by) | (v >> (64 - by));
}

/* xoshiro256**. */
uint64_t dmt_bits(dmt_random *r)
{
    uint64_t *s = r->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

int64_t dmt_int(dmt_random *r, int64_t lo, int64_t hi)
{
    uint64_t span = (uint64_t)hi - (uint64_t)lo + 1;
    uint64_t bits = dmt_bits(r);
    return (int64_t)((uint64_t)lo + (span ? bits % span : bits));
}

double dmt_unit(dmt_random *r)
{
    return (double)(dmt_bits(r) >> 11) * 0x1p-53;
}

bool dmt_chance(dmt_random *r, int percent)
{
    return dmt_int(r, 0, 99) < percent;
}

void dmt_shuffle(dmt_random *r, int count, int *order)
{
    for (int i = 0; i < count; i++) {
        int j = (int)dmt_int(r, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
}
