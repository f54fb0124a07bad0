/* Cumulative log(sum(e^x)) on GPUs. */
#include "kernels/order/scan.cuh"

DMI_SCAN_OF_ROW(logsumexp, FLOAT)
