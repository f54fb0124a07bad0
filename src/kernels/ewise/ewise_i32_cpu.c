/* Elementwise rows and reductions in i32. */
#define SUFFIX i32
#define NUMBER int32_t
#define UNSIGNED uint32_t
#define WIDE_NUMBER int64_t
#define HIGHEST INT32_MAX
#define LOWEST INT32_MIN
#define TABLE dmi_ewise_i32
#define REDUCERS dmi_reducers_i32
#include "kernels/ewise/ewise_integer_cpu.h"
