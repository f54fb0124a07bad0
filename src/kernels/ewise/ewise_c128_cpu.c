/* Elementwise rows and reductions in c128. */
#define SUFFIX c128
#define NUMBER double _Complex
#define PART_NUMBER double
#define TABLE dmi_ewise_c128
#define IN_ANY 1
#define IN_NUMERIC 1
#define IN_REAL 0
#define IN_ORDERED 0
#define IN_INTEGER 0
#define IN_BITS 0
#define IN_LOGIC 0
#define IN_FLOAT 0
#define IN_FLOATC 1
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) TY(times)(a, b)
#define DIV(a, b) TY(quotient)(a, b)
#define NEG(a) (-(a))
#define NUMBER_OF(number) TY(pair)((double)(number)->re, (double)(number)->im)
#include "kernels/ewise/ewise_loops_cpu.h"

#define REDUCERS dmi_reducers_c128
#define WIDE_NUMBER double _Complex
#define WIDE_MUL(a, b) dmi_times_c128(a, b)
#define ABSOLUTE(x) hypot((double)creal(x), (double)cimag(x))
#define SQUARED(x) ((double)creal(x) * (double)creal(x) + (double)cimag(x) * (double)cimag(x))
#include "kernels/reduce/reduce_loops_cpu.h"
