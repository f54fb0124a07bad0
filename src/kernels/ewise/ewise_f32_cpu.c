/* Elementwise rows and reductions in f32. */
#define SUFFIX f32
#define NUMBER float
#define PART_NUMBER float
#define TABLE dmi_ewise_f32
#define IN_ANY 1
#define IN_NUMERIC 1
#define IN_REAL 1
#define IN_ORDERED 1
#define IN_INTEGER 0
#define IN_BITS 0
#define IN_LOGIC 0
#define IN_FLOAT 1
#define IN_FLOATC 1
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define FN(name) name##f
#define ROUND(name, a) name##f(a)
#define LARGEST FLT_MAX
#define NUMBER_OF(number) (float)(number)->re
#include <float.h>
#include "kernels/ewise/ewise_loops_cpu.h"

#define REDUCERS dmi_reducers_f32
#define WIDE_NUMBER double
#define WIDE_MUL(a, b) ((a) * (double)(b))
#define ABSOLUTE(x) fabs((double)(x))
#define SQUARED(x) ((double)(x) * (double)(x))
#define HIGHEST ((NUMBER)INFINITY)
#define LOWEST (-(NUMBER)INFINITY)
#include "kernels/reduce/reduce_loops_cpu.h"
