/* Rows and reductions in a floating type. The file that includes this has defined SUFFIX, NUMBER, TABLE, REDUCERS, FN(name), OWN(name)
 * and LARGEST. */
#define PART_NUMBER NUMBER
#define COMPILED DMI_THRICE
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
#define ROUND(name, a) FN(name)(a)
#define NUMBER_OF(number) (NUMBER)(number)->re
#define WIDE_NUMBER double
#define WIDE_MUL(a, b) ((a) * (double)(b))
#define ABSOLUTE(x) fabs((double)(x))
#define SQUARED(x) ((double)(x) * (double)(x))
#define HIGHEST ((NUMBER)INFINITY)
#define LOWEST (-(NUMBER)INFINITY)
#include <float.h>
#include "kernels/ewise/ewise_loops_cpu.h"
#include "kernels/reduce/reduce_loops_cpu.h"
