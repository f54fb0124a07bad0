/* Elementwise rows and reductions in c128. */
#define SUFFIX c128
#define NUMBER double _Complex
#define PART_NUMBER double
#define FN(name) name
#define TABLE dmi_ewise_c128
#define REDUCERS dmi_reducers_c128
#include "kernels/ewise/ewise_complex_cpu.h"
