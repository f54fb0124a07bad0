/* Facts about the element types: one row a type. */
#include "base/base.h"

#include <string.h>

/* Kind and carrier; the names and sizes are in DM_DTYPE_MAP. */
#define FACTS_F64 DMI_KIND_FLOAT, DM_F64
#define FACTS_F32 DMI_KIND_FLOAT, DM_F32
#define FACTS_F16 DMI_KIND_FLOAT, DM_F32
#define FACTS_BF16 DMI_KIND_FLOAT, DM_F32
#define FACTS_I64 DMI_KIND_INT, DM_I64
#define FACTS_I32 DMI_KIND_INT, DM_I32
#define FACTS_U8 DMI_KIND_UINT, DM_I32
#define FACTS_BOOL DMI_KIND_BOOL, DM_BOOL
#define FACTS_I8 DMI_KIND_INT, DM_I32
#define FACTS_I16 DMI_KIND_INT, DM_I32
#define FACTS_U16 DMI_KIND_UINT, DM_I32
#define FACTS_U32 DMI_KIND_UINT, DM_I64
#define FACTS_U64 DMI_KIND_UINT, DM_U64
#define FACTS_C64 DMI_KIND_COMPLEX, DM_C64
#define FACTS_C128 DMI_KIND_COMPLEX, DM_C128
#define FACTS_F8E4M3 DMI_KIND_FLOAT, DM_F32
#define FACTS_F8E5M2 DMI_KIND_FLOAT, DM_F32

static const struct facts {
    const char *name;
    int64_t bytes;
    enum dmi_kind kind;
    dm_dtype carrier;
} table[DMI_DTYPE_END] = {
#define X(code, id, text, ctype, bytes) [DM_##id] = {text, bytes, FACTS_##id},
    DM_DTYPE_MAP(X)
#undef X
};

#define X(code, name, text, ctype, bytes)                                                                      \
    _Static_assert(sizeof(ctype) == (bytes), "the table and the C type of " text " disagree");                 \
    _Static_assert((code) > 0 && (code) < DMI_DTYPE_END, "the codes of the element types have a gap");
DM_DTYPE_MAP(X)
#undef X

/* An unknown code has the facts of code 0: no name, no bytes, no kind. */
static const struct facts *facts_of(dm_dtype dtype)
{
    return &table[(int)dtype > 0 && (int)dtype < DMI_DTYPE_END ? (int)dtype : 0];
}

int64_t dmi_dtype_bytes(dm_dtype dtype)
{
    return facts_of(dtype)->bytes;
}

const char *dmi_dtype_name(dm_dtype dtype)
{
    const char *name = facts_of(dtype)->name;
    return name != NULL ? name : "?";
}

enum dmi_kind dmi_dtype_kind(dm_dtype dtype)
{
    return facts_of(dtype)->kind;
}

dm_dtype dmi_dtype_carrier(dm_dtype dtype)
{
    return facts_of(dtype)->carrier;
}

bool dmi_dtype_is_float(dm_dtype dtype)
{
    return dmi_dtype_kind(dtype) == DMI_KIND_FLOAT;
}

bool dmi_dtype_is_complex(dm_dtype dtype)
{
    return dmi_dtype_kind(dtype) == DMI_KIND_COMPLEX;
}

dm_dtype dmi_dtype_part(dm_dtype dtype)
{
    return dtype == DM_C64 ? DM_F32 : dtype == DM_C128 ? DM_F64 : dtype;
}

bool dmi_dtype_is_integer(dm_dtype dtype)
{
    return dmi_dtype_kind(dtype) == DMI_KIND_INT || dmi_dtype_kind(dtype) == DMI_KIND_UINT;
}

bool dmi_dtype_parse(const char *name, dm_dtype *out)
{
    for (int code = 1; code < DMI_DTYPE_END; code++) {
        if (strcmp(name, table[code].name) == 0) {
            *out = (dm_dtype)code;
            return true;
        }
    }
    return false;
}

/* Two integers: the wider if both have signs or neither has; else the signed type that holds both, f64 where
 * none does. */
static dm_dtype promote_integers(dm_dtype a, dm_dtype b)
{
    const struct facts *wide = facts_of(a), *narrow = facts_of(b);
    if (wide->bytes < narrow->bytes) {
        return promote_integers(b, a);
    }
    if (wide->kind == narrow->kind || (wide->kind == DMI_KIND_INT && wide->bytes > narrow->bytes)) {
        return a;
    }
    switch (wide->bytes) { /* a is unsigned, or has as many bits as b */
    case 1:
        return DM_I16;
    case 2:
        return DM_I32;
    case 4:
        return DM_I64;
    default:
        return DM_F64;
    }
}

/* Two floats. Neither 16-bit format holds the other, nor does an 8-bit one. */
static dm_dtype promote_floats(dm_dtype a, dm_dtype b)
{
    int64_t bytes_a = dmi_dtype_bytes(a), bytes_b = dmi_dtype_bytes(b);
    if (bytes_a != bytes_b) {
        return bytes_a > bytes_b ? a : b;
    }
    return bytes_a == 1 ? DM_F16 : DM_F32;
}

/* A float beside an integer: wide enough for the integers of up to 16 bits, as NumPy sees it. bf16 and the
 * 8-bit floats, which NumPy has not, are not made f64 by an integer: f32 has all of their range. */
static dm_dtype promote_mixed(dm_dtype real, dm_dtype whole)
{
    int64_t bytes = dmi_dtype_bytes(whole);
    if (real == DM_F64 || (bytes > 2 && (real == DM_F32 || real == DM_F16))) {
        return DM_F64;
    }
    return real == DM_F16 && bytes == 1 ? DM_F16 : DM_F32;
}

static dm_dtype promote_complex(dm_dtype z, dm_dtype other)
{
    bool wide = z == DM_C128 || other == DM_C128 || other == DM_F64;
    return wide || (dmi_dtype_is_integer(other) && dmi_dtype_bytes(other) > 2) ? DM_C128 : DM_C64;
}

dm_dtype dmi_dtype_promote(dm_dtype a, dm_dtype b)
{
    if (a == b) {
        return a;
    }
    if (a == DM_BOOL || b == DM_BOOL) {
        return a == DM_BOOL ? b : a;
    }
    if (dmi_dtype_is_complex(a) || dmi_dtype_is_complex(b)) {
        return dmi_dtype_is_complex(a) ? promote_complex(a, b) : promote_complex(b, a);
    }
    if (dmi_dtype_is_float(a) && dmi_dtype_is_float(b)) {
        return promote_floats(a, b);
    }
    if (dmi_dtype_is_float(a) || dmi_dtype_is_float(b)) {
        return dmi_dtype_is_float(a) ? promote_mixed(a, b) : promote_mixed(b, a);
    }
    return promote_integers(a, b);
}
