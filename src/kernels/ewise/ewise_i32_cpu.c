/* Elementwise rows and reductions in i32. */
#define SUFFIX i32
#define NUMBER int32_t
#define PART_NUMBER int32_t
#define TABLE dmi_ewise_i32
#define IN_ANY 1
#define IN_NUMERIC 1
#define IN_REAL 1
#define IN_ORDERED 1
#define IN_INTEGER 1
#define IN_BITS 1
#define IN_LOGIC 0
#define IN_FLOAT 0
#define IN_FLOATC 0
#define ADD(a, b) (int32_t)((uint32_t)(a)+(uint32_t)(b))
#define SUB(a, b) (int32_t)((uint32_t)(a)-(uint32_t)(b))
#define MUL(a, b) (int32_t)((uint32_t)(a)*(uint32_t)(b))
#define NEG(a) (int32_t)(0 - (uint32_t)(a))
#define ROUND(f, a) (a)
#define NUMBER_OF(number) (int32_t)(number)->whole
#include "kernels/ewise/ewise_loops_cpu.h"

#define REDUCERS dmi_reducers_i32
#define WIDE_NUMBER int64_t
#define WIDE_MUL(a, b) (int64_t)((uint64_t)(a) * (uint64_t)(b))
#define HIGHEST INT32_MAX
#define LOWEST INT32_MIN
#include "kernels/reduce/reduce_loops_cpu.h"
