/* Loops compiled twice: for the baseline of the target, and for CPUs with AVX2, FMA and F16C, chosen at run
 * time; or three times: for AVX-512 too. All give the same bits: contraction is off, fma is explicit, and the
 * order of a sum is written out. Chosen by a plain test and not by ifunc, whose resolvers run before a
 * sanitizer is ready. */
#ifndef DMI_CPU_SIMD_H
#define DMI_CPU_SIMD_H

#include <stdbool.h>

#define DMI_BODY static inline __attribute__((always_inline))

/* DMI_CPU_PLAIN: tests build the baseline alone with it, to compare. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(DMI_CPU_PLAIN)
#ifndef DMI_WIDE_TARGET
#define DMI_WIDE_TARGET "avx2,fma,f16c"
#endif
#define DMI_WIDE __attribute__((target(DMI_WIDE_TARGET)))
#define DMI_HAVE_WIDE 1
static inline bool dmi_cpu_wide(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
/* Processors with the first AVX-512, which lack its second VBMI, lower their clock for it: they take AVX2. */
#define DMI_WIDEST                                                                                             \
    __attribute__((target(DMI_WIDE_TARGET ",avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))
static inline bool dmi_cpu_widest(void)
{
    return dmi_cpu_wide() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2");
}
#else
#define DMI_WIDE
#define DMI_WIDEST
static inline bool dmi_cpu_wide(void)
{
    return false;
}
static inline bool dmi_cpu_widest(void)
{
    return false;
}
#endif

/* The loop after it has no dependence between iterations: in place means exactly in place. */
#if defined(__clang__)
#define DMI_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define DMI_IVDEP _Pragma("GCC ivdep")
#else
#define DMI_IVDEP
#endif

/* A short loop over the lanes of a sum or of another state becomes whole vectors, not one piece of code for
 * each lane. */
#if defined(__GNUC__) && !defined(__clang__)
#define DMI_LANES_LOOP _Pragma("GCC unroll 1")
#else
#define DMI_LANES_LOOP
#endif

/* Asks for the cache lines of `bytes` at p + ahead, which may lie beyond the array. A core that only waits for
 * what it reads gets 0.7 of what it gets when it asks so far ahead. */
enum { DMI_AHEAD = 8192, DMI_TILE_AHEAD = 4096, DMI_LINE = 64 };
#if defined(__GNUC__)
#define DMI_PREFETCH(p, ahead, bytes)                                                                          \
    for (int line_ = 0; line_ < (int)(bytes); line_ += DMI_LINE) {                                             \
        __builtin_prefetch((const char *)(p) + (ahead) + line_);                                               \
    }
#else
#define DMI_PREFETCH(p, ahead, bytes)
#endif

/* Defines `void name(params)` as a choice between two compilations of `void name##_body(params)`. */
#define DMI_TWICE(linkage, name, params, args)                                                                 \
    static void name##_plain params                                                                            \
    {                                                                                                          \
        name##_body args;                                                                                      \
    }                                                                                                          \
    DMI_WIDE static void name##_wide params                                                                    \
    {                                                                                                          \
        name##_body args;                                                                                      \
    }                                                                                                          \
    linkage void name params                                                                                   \
    {                                                                                                          \
        if (dmi_cpu_wide()) {                                                                                  \
            name##_wide args;                                                                                  \
        } else {                                                                                               \
            name##_plain args;                                                                                 \
        }                                                                                                      \
    }

/* The same of three: for loops that compute more than they read and write. */
#define DMI_THRICE(linkage, name, params, args)                                                                \
    DMI_BODY void name##_narrower_body params                                                                  \
    {                                                                                                          \
        name##_body args;                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, name##_narrower, params, args)                                                           \
    DMI_WIDEST static void name##_widest params                                                                \
    {                                                                                                          \
        name##_body args;                                                                                      \
    }                                                                                                          \
    linkage void name params                                                                                   \
    {                                                                                                          \
        if (dmi_cpu_widest()) {                                                                                \
            name##_widest args;                                                                                \
        } else {                                                                                               \
            name##_narrower args;                                                                              \
        }                                                                                                      \
    }

#endif
