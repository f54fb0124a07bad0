/* Elementwise rows and reductions in f64. */
#define SUFFIX f64
#define NUMBER double
#define FN(name) name
#define OWN(name) dmi_f64_##name
#define LARGEST DBL_MAX
#define TABLE dmi_ewise_f64
#define REDUCERS dmi_reducers_f64
#include "kernels/ewise/ewise_float_cpu.h"
