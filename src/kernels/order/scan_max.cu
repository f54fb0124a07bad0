/* Cumulative maxima on GPUs. */
#include "kernels/order/scan.cuh"

DMI_SCAN_OF_ROW(max, REAL)
