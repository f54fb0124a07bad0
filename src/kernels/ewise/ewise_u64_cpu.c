/* Elementwise rows and reductions in u64. */
#define SUFFIX u64
#define NUMBER uint64_t
#define PART_NUMBER uint64_t
#define TABLE dmi_ewise_u64
#define IN_ANY 1
#define IN_NUMERIC 1
#define IN_REAL 1
#define IN_ORDERED 1
#define IN_INTEGER 1
#define IN_BITS 1
#define IN_LOGIC 0
#define IN_FLOAT 0
#define IN_FLOATC 0
#define ADD(a, b) (uint64_t)((uint64_t)(a)+(uint64_t)(b))
#define SUB(a, b) (uint64_t)((uint64_t)(a)-(uint64_t)(b))
#define MUL(a, b) (uint64_t)((uint64_t)(a)*(uint64_t)(b))
#define NEG(a) (uint64_t)(0 - (uint64_t)(a))
#define ROUND(f, a) (a)
#define NUMBER_OF(number) (uint64_t)(number)->whole
#include "kernels/ewise/ewise_loops_cpu.h"

#define REDUCERS dmi_reducers_u64
#define WIDE_NUMBER uint64_t
#define WIDE_MUL(a, b) (uint64_t)((uint64_t)(a) * (uint64_t)(b))
#define HIGHEST UINT64_MAX
#define LOWEST 0
#include "kernels/reduce/reduce_loops_cpu.h"
