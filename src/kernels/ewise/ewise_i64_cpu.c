/* Elementwise rows and reductions in i64. */
#define SUFFIX i64
#define NUMBER int64_t
#define UNSIGNED uint64_t
#define WIDE_NUMBER int64_t
#define HIGHEST INT64_MAX
#define LOWEST INT64_MIN
#define TABLE dmi_ewise_i64
#define REDUCERS dmi_reducers_i64
#include "kernels/ewise/ewise_integer_cpu.h"
