/* Rows and reductions in a complex type. The file that includes this has defined SUFFIX, NUMBER, PART_NUMBER, TABLE, REDUCERS
 * and FN(name). */
/* GCC 12 makes fused steps of p r - q s where it vectorises, though contraction is off. So there is no fma to be had. */
#define DMI_WIDE_TARGET "avx2"
#define COMPILED DMI_TWICE
#define IN_ANY 1
#define IN_NUMERIC 1
#define IN_REAL 0
#define IN_ORDERED 0
#define IN_INTEGER 0
#define IN_BITS 0
#define IN_LOGIC 0
#define IN_FLOAT 0
#define IN_FLOATC 1
#define OWN(name) TY(name)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) TY(times)(a, b)
#define DIV(a, b) TY(quotient)(a, b)
#define NEG(a) (-(a))
#define NUMBER_OF(number) TY(pair)((PART_NUMBER)(number)->re, (PART_NUMBER)(number)->im)
#define WIDE_NUMBER double _Complex
#define WIDE_MUL(a, b) dmi_times_c128(a, b)
#define ABSOLUTE(x) hypot((double)FN(creal)(x), (double)FN(cimag)(x))
#define SQUARED(x) ((double)FN(creal)(x) * (double)FN(creal)(x) + (double)FN(cimag)(x) * (double)FN(cimag)(x))
#include "kernels/ewise/ewise_loops_cpu.h"
#include "kernels/reduce/reduce_loops_cpu.h"
