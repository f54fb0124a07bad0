/* Cumulative minima on GPUs. */
#include "kernels/order/scan.cuh"

DMI_SCAN_OF_ROW(min, REAL)
