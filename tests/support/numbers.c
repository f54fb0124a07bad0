#include "support/numbers.h"

#include <math.h>
#include <string.h>

const dm_dtype dmt_dtypes[DMT_DTYPES] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32,    DM_U8,    DM_BOOL,
                                         DM_I8,  DM_I16, DM_U16, DM_U32,  DM_U64, DM_F8E4M3, DM_F8E5M2};
const dm_dtype dmt_floats[4] = {DM_F64, DM_F32, DM_F16, DM_BF16};

/* 'f': bits of precision (the hidden one counted) and exponents of the normal numbers; 'i': with sign, 'u',
 * 'b'. */
typedef struct format {
    const char *name;
    int64_t bytes;
    char kind;
    int precision, emin, emax;
} format;

static const format formats[] = {
    [DM_F64] = {"f64", 8, 'f', 53, -1022, 1023},
    [DM_F32] = {"f32", 4, 'f', 24, -126, 127},
    [DM_F16] = {"f16", 2, 'f', 11, -14, 15},
    [DM_BF16] = {"bf16", 2, 'f', 8, -126, 127},
    [DM_I64] = {"i64", 8, 'i', 0, 0, 0},
    [DM_I32] = {"i32", 4, 'i', 0, 0, 0},
    [DM_U8] = {"u8", 1, 'u', 0, 0, 0},
    [DM_BOOL] = {"bool", 1, 'b', 0, 0, 0},
    [DM_I8] = {"i8", 1, 'i', 0, 0, 0},
    [DM_I16] = {"i16", 2, 'i', 0, 0, 0},
    [DM_U16] = {"u16", 2, 'u', 0, 0, 0},
    [DM_U32] = {"u32", 4, 'u', 0, 0, 0},
    [DM_U64] = {"u64", 8, 'u', 0, 0, 0},
    [DM_F8E4M3] = {"f8e4m3", 1, 'f', 4, -6, 8},
    [DM_F8E5M2] = {"f8e5m2", 1, 'f', 3, -14, 15},
};

static const format *format_of(dm_dtype dtype)
{
    static const format none = {"?", 0, '?', 0, 0, 0};
    bool known = (int)dtype > 0 && (size_t)dtype < sizeof formats / sizeof formats[0] && formats[dtype].name;
    return known ? &formats[dtype] : &none;
}

bool dmt_is_float(dm_dtype dtype)
{
    return format_of(dtype)->kind == 'f';
}

const char *dmt_name(dm_dtype dtype)
{
    return format_of(dtype)->name;
}

int64_t dmt_bytes(dm_dtype dtype)
{
    return format_of(dtype)->bytes;
}

long double dmt_int_min(dm_dtype dtype)
{
    const format *f = format_of(dtype);
    return f->kind == 'i' ? -ldexpl(1, 8 * (int)f->bytes - 1) : 0;
}

long double dmt_int_max(dm_dtype dtype)
{
    const format *f = format_of(dtype);
    return f->kind == 'b' ? 1 : ldexpl(1, 8 * (int)f->bytes - (f->kind == 'i')) - 1;
}

long double dmt_eps(dm_dtype dtype)
{
    return dmt_is_float(dtype) ? ldexpl(1, 1 - format_of(dtype)->precision) : 0;
}

long double dmt_tiny(dm_dtype dtype)
{
    const format *f = format_of(dtype);
    return dmt_is_float(dtype) ? ldexpl(1, f->emin - f->precision + 1) : 0;
}

/* NumPy's rule for the types that elementwise ops take, the 16-bit floats computed in f32. */
static dm_dtype mixed(dm_dtype real, dm_dtype whole)
{
    if (real == DM_F64 || (dmt_bytes(whole) > 2 && real != DM_BF16)) {
        return DM_F64;
    }
    return DM_F32;
}

dm_dtype dmt_computing(dm_dtype a, dm_dtype b, dm_dtype out)
{
    if (dmt_is_float(a) && dmt_is_float(b)) {
        return a == DM_F64 || b == DM_F64 ? DM_F64 : DM_F32;
    }
    if (dmt_is_float(a) || dmt_is_float(b)) {
        return dmt_is_float(a) ? mixed(a, b) : mixed(b, a);
    }
    return dmt_is_float(out) ? DM_F64 : DM_I64;
}

/* f8e4m3: its numbers go on to where Inf would be, and the last pattern is NaN. */
static bool without_inf(const format *f)
{
    return f->emax == -f->emin + 2;
}

/* Nearest multiple of the spacing of the format's numbers around v. rintl rounds ties to even. */
static long double round_short(const format *f, long double v)
{
    int exponent;
    if (v == 0 || isnan(v) || isinf(v)) {
        return isinf(v) && without_inf(f) ? (long double)NAN : v;
    }
    frexpl(v, &exponent);
    int leading = exponent - 1 > f->emin ? exponent - 1 : f->emin;
    int spacing = leading - (f->precision - 1);
    long double rounded = ldexpl(rintl(ldexpl(v, -spacing)), spacing);
    if (without_inf(f)) {
        return fabsl(rounded) > 448 ? (long double)NAN : rounded;
    }
    return fabsl(rounded) >= ldexpl(1, f->emax + 1) ? copysignl(INFINITY, v) : rounded;
}

long double dmt_from_real(dm_dtype to, long double v)
{
    const format *f = format_of(to);
    if (f->kind == 'f') {
        return to == DM_F64 ? (double)v : to == DM_F32 ? (float)v : round_short(f, v);
    }
    if (f->kind == 'b') {
        return v != 0;
    }
    if (isnan(v)) {
        return 0;
    }
    long double whole = truncl(v);
    if (whole <= dmt_int_min(to)) {
        return dmt_int_min(to);
    }
    /* + 0: truncl(-0.5) is -0, which no integer is. */
    return whole >= dmt_int_max(to) ? dmt_int_max(to) : whole + 0;
}

uint64_t dmt_wrapped(long double v)
{
    return v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
}

long double dmt_from_whole(dm_dtype to, int64_t v)
{
    const format *f = format_of(to);
    if (f->kind == 'f' || f->kind == 'b') {
        return dmt_from_real(to, (long double)v);
    }
    int unused = 64 - 8 * (int)f->bytes;
    uint64_t low = (uint64_t)v << unused >> unused;
    bool negative = f->kind == 'i' && low >> (8 * f->bytes - 1);
    return (long double)low - (negative ? ldexpl(1, 8 * (int)f->bytes) : 0);
}

long double dmt_convert(dm_dtype from, dm_dtype to, long double v)
{
    bool real = dmt_is_float(from) || dmt_is_float(to);
    return real ? dmt_from_real(to, v) : dmt_from_whole(to, (int64_t)dmt_wrapped(v));
}

static uint16_t encode_short(const format *f, long double v)
{
    uint32_t sign = signbit(v) ? 1u << (8 * f->bytes - 1) : 0;
    uint32_t top = (uint32_t)(f->emax + f->emax + 1) << (f->precision - 1);
    int exponent;
    if (isnan(v)) {
        return (uint16_t)(without_inf(f) ? 0x7f : top | 1u << (f->precision - 2));
    }
    if (isinf(v)) {
        return (uint16_t)(sign | top);
    }
    if (v == 0) {
        return (uint16_t)sign;
    }
    frexpl(v, &exponent);
    int leading = exponent - 1 > f->emin ? exponent - 1 : f->emin;
    uint32_t digits = (uint32_t)ldexpl(fabsl(v), f->precision - 1 - leading);
    /* A normal number's hidden bit adds the 1 that the exponent field is short of here; a subnormal has none.
     */
    uint32_t field = (uint32_t)(leading - f->emin) << (f->precision - 1);
    return (uint16_t)(sign | (field + digits));
}

static long double decode_short(const format *f, uint16_t bits)
{
    uint32_t digits = bits & ((1u << (f->precision - 1)) - 1);
    uint32_t last = (1u << (8 * f->bytes - 1)) - 1;
    int field = (int)((bits & last) >> (f->precision - 1));
    long double sign = bits > last ? -1.0L : 1.0L;
    if (without_inf(f) && (bits & last) == last) {
        return NAN;
    }
    if (field == f->emax + f->emax + 1) {
        return digits ? (long double)NAN : sign * (long double)INFINITY;
    }
    if (field > 0) {
        digits |= 1u << (f->precision - 1);
        field--;
    }
    return sign * ldexpl((long double)digits, field + f->emin - (f->precision - 1));
}

/* Little-endian hosts. */
void dmt_encode(dm_dtype dtype, long double v, void *to)
{
    if (dtype == DM_F64) {
        double element = (double)v;
        memcpy(to, &element, sizeof element);
    } else if (dtype == DM_F32) {
        float element = (float)v;
        memcpy(to, &element, sizeof element);
    } else {
        uint64_t bits = dmt_is_float(dtype) ? encode_short(format_of(dtype), v) : dmt_wrapped(v);
        memcpy(to, &bits, (size_t)dmt_bytes(dtype));
    }
}

long double dmt_decode(dm_dtype dtype, const void *from)
{
    double f64;
    float f32;
    uint64_t bits = 0;
    switch ((int)dtype) {
    case DM_F64:
        memcpy(&f64, from, sizeof f64);
        return f64;
    case DM_F32:
        memcpy(&f32, from, sizeof f32);
        return f32;
    default:
        memcpy(&bits, from, (size_t)dmt_bytes(dtype));
        return dmt_is_float(dtype) ? decode_short(format_of(dtype), (uint16_t)bits)
                                   : dmt_from_whole(dtype, (int64_t)bits);
    }
}
