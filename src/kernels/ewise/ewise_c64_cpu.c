/* Elementwise rows and reductions in c64. */
#define SUFFIX c64
#define NUMBER float _Complex
#define PART_NUMBER float
#define FN(name) name##f
#define TABLE dmi_ewise_c64
#define REDUCERS dmi_reducers_c64
#include "kernels/ewise/ewise_complex_cpu.h"
