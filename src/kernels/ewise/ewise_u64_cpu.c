/* Elementwise rows and reductions in u64. */
#define SUFFIX u64
#define NUMBER uint64_t
#define UNSIGNED uint64_t
#define WIDE_NUMBER uint64_t
#define HIGHEST UINT64_MAX
#define LOWEST 0
#define TABLE dmi_ewise_u64
#define REDUCERS dmi_reducers_u64
#include "kernels/ewise/ewise_integer_cpu.h"
