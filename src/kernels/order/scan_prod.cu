/* Cumulative products on GPUs. */
#include "kernels/order/scan.cuh"

DMI_SCAN_OF_ROW(prod, ANY)
