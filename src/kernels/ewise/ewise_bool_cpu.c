/* Elementwise rows and reductions in bool. */
#define SUFFIX boolean
#define NUMBER uint8_t
#define PART_NUMBER uint8_t
#define TABLE dmi_ewise_bool
#define COMPILED DMI_TWICE
#define IN_ANY 1
#define IN_NUMERIC 0
#define IN_REAL 1
#define IN_ORDERED 0
#define IN_INTEGER 0
#define IN_BITS 1
#define IN_LOGIC 1
#define IN_FLOAT 0
#define IN_FLOATC 0
#define ADD(a, b) (uint8_t)((a) | (b))
#define MUL(a, b) (uint8_t)((a) & (b))
#define NUMBER_OF(number) (uint8_t)((number)->re != 0)
#include "kernels/ewise/ewise_loops_cpu.h"

#define REDUCERS dmi_reducers_bool
#define WIDE_NUMBER int64_t
#define WIDE_MUL(a, b) (int64_t)((uint64_t)(a) * (uint64_t)(b))
#define HIGHEST 1
#define LOWEST 0
#include "kernels/reduce/reduce_loops_cpu.h"
