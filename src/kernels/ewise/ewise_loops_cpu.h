/* The loops of all elementwise rows for one carrier. The file that includes this has defined
 *   SUFFIX NUMBER PART_NUMBER   f32, float, and the real type of PART rows
 *   TABLE                       the name of the table made here
 *   IN_<domain>                 1 where the carrier is in it, else 0; all domains
 *   ADD SUB MUL DIV NEG FN ROUND LARGEST NUMBER_OF(number)
 *   COMPILED                    how rows are compiled: DMI_TWICE or DMI_THRICE, see simd.h */
#include "kernels/cpu/simd.h"
#include "kernels/ewise/ewise_cpu.h"
#include "kernels/ewise/ewise_math_cpu.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define JOIN3_(a, b, c) a##b##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)
#define TY(name) JOIN3(dmi_, name, JOIN(_, SUFFIX))
#define LIT(value) ((NUMBER)(value))

#define PARAMETERS                                                                                             \
    (void *out, const void *pa, const void *pb, const void *pc, const dmi_number *number_s,                    \
     const dmi_number *number_t, int64_t n)
#define ARGUMENTS (out, pa, pb, pc, number_s, number_t, n)

/* What each form reads and writes. */
#define READ_A(type) const type A = ((const type *)pa)[i];
#define READ_B const NUMBER B = ((const NUMBER *)pb)[i];
#define READ_C const NUMBER C = ((const NUMBER *)pc)[i];
#define LOAD_UNARY READ_A(NUMBER)
#define LOAD_BINARY READ_A(NUMBER) READ_B
#define LOAD_TERNARY READ_A(NUMBER) READ_B READ_C
#define LOAD_TEST READ_A(NUMBER)
#define LOAD_COMPARE READ_A(NUMBER) READ_B
#define LOAD_CHOOSE READ_A(uint8_t) READ_B READ_C
#define LOAD_PART READ_A(NUMBER)
#define LOAD_NONE const NUMBER A = 0;
#define RESULT_UNARY NUMBER
#define RESULT_BINARY NUMBER
#define RESULT_TERNARY NUMBER
#define RESULT_TEST uint8_t
#define RESULT_COMPARE uint8_t
#define RESULT_CHOOSE NUMBER
#define RESULT_PART PART_NUMBER
#define RESULT_NONE NUMBER

#define LOOP(name, form, ...)                                                                                  \
    DMI_BODY void name PARAMETERS                                                                              \
    {                                                                                                          \
        const NUMBER S = NUMBER_OF(number_s), T = NUMBER_OF(number_t);                                         \
        RESULT_##form *o = out;                                                                                \
        (void)pa, (void)pb, (void)pc, (void)S, (void)T;                                                        \
        DMI_IVDEP                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            LOAD_##form                                                                                        \
            (void) A;                                                                                          \
            o[i] = (RESULT_##form)(__VA_ARGS__);                                                               \
        }                                                                                                      \
    }
#define DEFINE(name, form, ...)                                                                                \
    LOOP(JOIN(name, _body), form, __VA_ARGS__)                                                                 \
    COMPILED(static, name, PARAMETERS, ARGUMENTS)
#define DEFINE_1(name, form, ...) DEFINE(row_##name, form, __VA_ARGS__)
#define DEFINE_0(name, form, ...)
#define SECOND_(a, b, ...) b
#define SECOND(...) SECOND_(__VA_ARGS__)
#define ENTRY_1(name) [DMI_EW_##name] = SECOND(JOIN(MENDED_, name), row_##name, 0),
#define ENTRY_0(name)

#define DMI_EW(name, form, domain, class, ...) JOIN(DEFINE_, IN_##domain)(name, form, __VA_ARGS__)
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#if IN_FLOAT
#include "kernels/ewise/ewise_rare_cpu.h"
#endif

#define DMI_EW(name, form, domain, class, ...) JOIN(ENTRY_, IN_##domain)(name)
dmi_ewise_fn *const TABLE[DMI_EW_ROWS] = {
#include "kernels/ewise/ewise.def"
};
