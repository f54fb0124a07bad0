/* Rows and reductions in an integer type. The file that includes this has defined SUFFIX, NUMBER, UNSIGNED (the type of as
 * many bits), TABLE, REDUCERS, WIDE_NUMBER, HIGHEST and LOWEST. */
#define PART_NUMBER NUMBER
#define COMPILED DMI_TWICE
#define IN_ANY 1
#define IN_NUMERIC 1
#define IN_REAL 1
#define IN_ORDERED 1
#define IN_INTEGER 1
#define IN_BITS 1
#define IN_LOGIC 0
#define IN_FLOAT 0
#define IN_FLOATC 0
#define ADD(a, b) (NUMBER)((UNSIGNED)(a) + (UNSIGNED)(b))
#define SUB(a, b) (NUMBER)((UNSIGNED)(a) - (UNSIGNED)(b))
#define MUL(a, b) (NUMBER)((UNSIGNED)(a) * (UNSIGNED)(b))
#define NEG(a) (NUMBER)(0 - (UNSIGNED)(a))
#define ROUND(name, a) (a)
#define NUMBER_OF(number) (NUMBER)(number)->whole
#define WIDE_MUL(a, b) (WIDE_NUMBER)((uint64_t)(a) * (uint64_t)(b))
#include "kernels/ewise/ewise_loops_cpu.h"
#include "kernels/reduce/reduce_loops_cpu.h"
