/* Facts about the element types, from DM_DTYPE_MAP. */
#include "base/base.h"

#include <string.h>

#define X(code, name, text, ctype, bytes)                                                                      \
    _Static_assert(sizeof(ctype) == (bytes), "the table and the C type of " text " disagree");
DM_DTYPE_MAP(X)
#undef X

int64_t dmi_dtype_bytes(dm_dtype dtype)
{
    switch (dtype) {
#define X(code, name, text, ctype, bytes)                                                                      \
    case DM_##name:                                                                                            \
        return bytes;
        DM_DTYPE_MAP(X)
#undef X
    }
    return 0;
}

const char *dmi_dtype_name(dm_dtype dtype)
{
    switch (dtype) {
#define X(code, name, text, ctype, bytes)                                                                      \
    case DM_##name:                                                                                            \
        return text;
        DM_DTYPE_MAP(X)
#undef X
    }
    return "?";
}

bool dmi_dtype_is_float(dm_dtype dtype)
{
    return dtype == DM_F64 || dtype == DM_F32 || dtype == DM_F16 || dtype == DM_BF16;
}

bool dmi_dtype_parse(const char *name, dm_dtype *out)
{
#define X(code, id, text, ctype, bytes)                                                                        \
    if (strcmp(name, text) == 0) {                                                                             \
        *out = DM_##id;                                                                                        \
        return true;                                                                                           \
    }
    DM_DTYPE_MAP(X)
#undef X
    return false;
}

/* Of two different types: a mixture of floats is at least f32, since neither 16-bit format holds the other; an
 * integer with a float is f64, which holds both (i64 as nearly as it gets). */
dm_dtype dmi_dtype_promote(dm_dtype a, dm_dtype b)
{
    if (a == b) {
        return a;
    }
    bool float_a = dmi_dtype_is_float(a), float_b = dmi_dtype_is_float(b);
    if (!float_a && !float_b) {
        return a == DM_I64 || b == DM_I64 ? DM_I64 : DM_I32;
    }
    if (a == DM_F64 || b == DM_F64 || float_a != float_b) {
        return DM_F64;
    }
    return DM_F32;
}
