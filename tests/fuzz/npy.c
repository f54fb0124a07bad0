/* Headers of .npy files: any bytes are an error, or a header that the library writes and reads back as the same. */
#include "fuzz.h"
#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = exactly(data, size, 0), again[512];
    int64_t need = 0, unused;
    dmi_npy_info info, back;
    memset(&info, 0, sizeof info);
    /* A file of any length, so that the size that the header asks for can be right. */
    dm_status status = dmi_npy_parse(bytes, (int64_t)size, INT64_MAX, &info, &need);
    if (status == DM_OK && need <= (int64_t)size) {
        int64_t count = 1;
        HOLDS(info.ndim >= 0 && info.ndim <= DM_MAX_DIMS);
        for (int d = 0; d < info.ndim; d++) {
            HOLDS(info.shape[d] >= 0 && !__builtin_mul_overflow(count, info.shape[d], &count));
        }
        HOLDS(info.count == count && info.data_offset <= (int64_t)size);
        int n = dmi_npy_format(info.dtype, info.ndim, info.shape, info.fortran_order, again);
        HOLDS(n > 0 && n <= (int)sizeof again && n % 64 == 0);
        HOLDS(dmi_npy_parse(again, n, INT64_MAX, &back, &unused) == DM_OK);
        HOLDS(back.dtype == info.dtype && back.ndim == info.ndim && back.count == info.count &&
              back.fortran_order == info.fortran_order && memcmp(back.shape, info.shape, (size_t)info.ndim * sizeof *info.shape) == 0);
    }
    free(bytes);
    return 0;
}
