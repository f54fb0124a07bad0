/* Loops compiled twice: for the baseline of the target, and for CPUs with AVX2, FMA and F16C, chosen at run
 * time. Both give the same bits: contraction is off, fma is explicit, and the order of a sum is written out.
 * Chosen by a plain test and not by ifunc, whose resolvers run before a sanitizer is ready. */
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
#else
#define DMI_WIDE
static inline bool dmi_cpu_wide(void)
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

#endif
