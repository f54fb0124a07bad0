/* What the tests of GPUs share that run in every build: on real GPUs where there is CUDA, else on emulated ones, whose
 * number DMATH_EMULATED_GPUS gives. Skips where there is none. */
#ifndef GPU_CASE_H
#define GPU_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/runtime.h"
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void ok(dm_status status)
{
    if (status != DM_OK) {
        fail_msg("%s: %s", dmi_status_name(status), dmi_error_text());
    }
}

/* Makes device 0 current; skips the test where there is none. */
static inline int gpus_or_skip(void)
{
    int n = dmi_cu_devices();
    if (n == 0) {
        puts("no GPU, skipped");
        skip();
    }
    ok(dmi_cu_use(0));
    return n;
}

static inline uint64_t next_random(uint64_t *state) /* xorshift */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
static inline int64_t random_in(uint64_t *state, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(next_random(state) % (uint64_t)(hi - lo + 1));
}

#endif
