/* What the tests of bad arguments share: random numbers, and calls that must be refused with words. */
#ifndef BAD_INPUT_H
#define BAD_INPUT_H

#include "robust.h"

enum { N = 6 };

static inline uint64_t random_bits(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15); /* SplitMix64 */
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static const int64_t numbers[] = {
    0,         1,         2,         3,         7,         1 << 20,       INT32_MAX,
    -1,        -2,        INT32_MIN, INT64_MIN, INT64_MAX, INT64_MAX - 1, INT64_MAX / 2,
    1LL << 31, 1LL << 32, 1LL << 40, 1LL << 61, 1LL << 62, 3037000500};

static inline int64_t any_number(uint64_t *random)
{
    return numbers[random_bits(random) % (sizeof numbers / sizeof *numbers)];
}

static inline int small_number(uint64_t *random)
{
    static const int small[] = {0, 1, 2, 3, -1, 5, INT32_MAX, INT32_MIN, 65536, 0, 1, 1, 2};
    return small[random_bits(random) % (sizeof small / sizeof *small)];
}

static inline void refused_at(dm_status status, unsigned wanted, const char *word, const char *call, int line)
{
    if (status == DM_OK || !(wanted >> status & 1)) {
        fail_msg("line %d: %s gave %s", line, call, dm_status_name(status));
    }
    const char *text = dm_error_message();
    if (!*text || (word && !strstr(text, word))) {
        fail_msg("line %d: %s: the message does not name %s: \"%s\"", line, call, word ? word : "anything",
                 text);
    }
}

#define ONE(name) (1u << DM_ERR_##name)
#define REFUSED(wanted, word, call) refused_at((call), (wanted), (word), #call, __LINE__)

#endif
