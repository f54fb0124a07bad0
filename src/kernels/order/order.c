/* Memory that kernels along one dim work in. */
#include "kernels/order/order.h"

static int64_t rounded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* CPUs sort one row after the other: keys and places, twice each. */
static int64_t scratch_cpu(const dmi_sort *s)
{
    int64_t n = s->extent[s->dim], bytes = 2 * rounded(n * dmi_dtype_bytes(s->dtype));
    if (s->indices || s->most < n) {
        bytes += 2 * rounded(n * (int64_t)sizeof(uint32_t));
    }
    bytes += rounded((s->runs + 1) * (int64_t)sizeof(int64_t));
    return bytes + (dmi_sort_selects(s) ? DMI_SORT_SELECT * (int64_t)sizeof(uint32_t) : 0);
}

int64_t dmi_sort_scratch(const dmi_sort *s, bool gpu)
{
    (void)gpu;
    return scratch_cpu(s);
}
