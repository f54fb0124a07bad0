/* Elementwise rows and reductions in c64. */
#define SUFFIX c64
#define NUMBER float _Complex
#define PART_NUMBER float
#define TABLE dmi_ewise_c64
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
#define NUMBER_OF(number) TY(pair)((float)(number)->re, (float)(number)->im)
#include "kernels/ewise/ewise_loops_cpu.h"

#define REDUCERS dmi_reducers_c64
#define WIDE_NUMBER double _Complex
#define WIDE_MUL(a, b) dmi_times_c128(a, b)
#define ABSOLUTE(x) hypot((double)crealf(x), (double)cimagf(x))
#define SQUARED(x) ((double)crealf(x) * (double)crealf(x) + (double)cimagf(x) * (double)cimagf(x))
#include "kernels/reduce/reduce_loops_cpu.h"
