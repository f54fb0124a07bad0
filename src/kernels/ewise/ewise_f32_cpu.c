/* Elementwise rows and reductions in f32. */
#define SUFFIX f32
#define NUMBER float
#define FN(name) name##f
#define OWN(name) dmi_f32_##name
#define LARGEST FLT_MAX
#define TABLE dmi_ewise_f32
#define REDUCERS dmi_reducers_f32
#include "kernels/ewise/ewise_float_cpu.h"
