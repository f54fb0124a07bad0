#include "support/numbers.h"

#include <math.h>
#include <string.h>

const dm_dtype dmt_dtypes[DMT_DTYPES] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32, DM_U8};
const dm_dtype dmt_floats[4] = {DM_F64, DM_F32, DM_F16, DM_BF16};
const dm_dtype dmt_ints[3] = {DM_I64, DM_I32, DM_U8};

/* Of a 16-bit float: bits of precision (the hidden one counted) and exponents of its normal numbers. */
typedef struct format {
    int precision, emin, emax;
} format;

static format format_of(dm_dtype dtype)
{
    return dtype == DM_F16 ? (format){11, -14, 15} : (format){8, -126, 127};
}

bool dmt_is_float(dm_dtype dtype)
{
    return dtype == DM_F64 || dtype == DM_F32 || dtype == DM_F16 || dtype == DM_BF16;
}

const char *dmt_name(dm_dtype dtype)
{
    static const char *const names[] = {"?", "f64", "f32", "f16", "bf16", "i64", "i32", "u8"};
    return (int)dtype >= 1 && (int)dtype <= DMT_DTYPES ? names[dtype] : names[0];
}

int64_t dmt_bytes(dm_dtype dtype)
{
    static const int64_t bytes[] = {0, 8, 4, 2, 2, 8, 4, 1};
    return (int)dtype >= 1 && (int)dtype <= DMT_DTYPES ? bytes[dtype] : 0;
}

int64_t dmt_int_min(dm_dtype dtype)
{
    return dtype == DM_U8 ? 0 : dtype == DM_I32 ? INT32_MIN : INT64_MIN;
}

int64_t dmt_int_max(dm_dtype dtype)
{
    return dtype == DM_U8 ? UINT8_MAX : dtype == DM_I32 ? INT32_MAX : INT64_MAX;
}

long double dmt_eps(dm_dtype dtype)
{
    switch ((int)dtype) {
    case DM_F64:
        return 0x1p-52L;
    case DM_F32:
        return 0x1p-23L;
    case DM_F16:
        return 0x1p-10L;
    case DM_BF16:
        return 0x1p-7L;
    default:
        return 0;
    }
}

long double dmt_tiny(dm_dtype dtype)
{
    switch ((int)dtype) {
    case DM_F64:
        return 0x1p-1074L;
    case DM_F32:
        return 0x1p-149L;
    case DM_F16:
        return 0x1p-24L;
    case DM_BF16:
        return 0x1p-133L;
    default:
        return 0;
    }
}

dm_dtype dmt_computing(dm_dtype a, dm_dtype b, dm_dtype out)
{
    if (dmt_is_float(a) && dmt_is_float(b)) {
        return a == DM_F64 || b == DM_F64 ? DM_F64 : DM_F32;
    }
    return dmt_is_float(a) || dmt_is_float(b) || dmt_is_float(out) ? DM_F64 : DM_I64;
}

/* Nearest multiple of the spacing of the format's numbers around v. rintl rounds ties to even. */
static long double round_short(format f, long double v)
{
    int exponent;
    if (v == 0 || isnan(v) || isinf(v)) {
        return v;
    }
    frexpl(v, &exponent);
    int leading = exponent - 1 > f.emin ? exponent - 1 : f.emin;
    int spacing = leading - (f.precision - 1);
    long double rounded = ldexpl(rintl(ldexpl(v, -spacing)), spacing);
    return fabsl(rounded) >= ldexpl(1, f.emax + 1) ? copysignl(INFINITY, v) : rounded;
}

long double dmt_from_real(dm_dtype to, long double v)
{
    switch ((int)to) {
    case DM_F64:
        return (double)v;
    case DM_F32:
        return (float)v;
    case DM_F16:
    case DM_BF16:
        return round_short(format_of(to), v);
    default:
        break;
    }
    if (isnan(v)) {
        return 0;
    }
    long double whole = truncl(v);
    if (whole <= (long double)dmt_int_min(to)) {
        return (long double)dmt_int_min(to);
    }
    /* + 0: truncl(-0.5) is -0, which no integer is. */
    return whole >= (long double)dmt_int_max(to) ? (long double)dmt_int_max(to) : whole + 0;
}

long double dmt_from_whole(dm_dtype to, int64_t v)
{
    switch ((int)to) {
    case DM_I64:
        return (long double)v;
    case DM_I32: {
        int64_t low = (int64_t)((uint64_t)v & 0xffffffffu);
        return (long double)(low > INT32_MAX ? low - 0x100000000 : low);
    }
    case DM_U8:
        return (long double)((uint64_t)v & 0xffu);
    default:
        return dmt_from_real(to, (long double)v);
    }
}

long double dmt_convert(dm_dtype from, dm_dtype to, long double v)
{
    return dmt_is_float(from) ? dmt_from_real(to, v) : dmt_from_whole(to, (int64_t)v);
}

static uint16_t encode_short(format f, long double v)
{
    uint32_t sign = signbit(v) ? 0x8000u : 0;
    uint32_t top = (uint32_t)(f.emax + f.emax + 1) << (f.precision - 1);
    int exponent;
    if (isnan(v)) {
        return (uint16_t)(top | 1u << (f.precision - 2));
    }
    if (isinf(v)) {
        return (uint16_t)(sign | top);
    }
    if (v == 0) {
        return (uint16_t)sign;
    }
    frexpl(v, &exponent);
    int leading = exponent - 1 > f.emin ? exponent - 1 : f.emin;
    uint32_t digits = (uint32_t)ldexpl(fabsl(v), f.precision - 1 - leading);
    /* A normal number's hidden bit adds the 1 that the exponent field is short of here; a subnormal has none.
     */
    uint32_t field = (uint32_t)(leading - f.emin) << (f.precision - 1);
    return (uint16_t)(sign | (field + digits));
}

static long double decode_short(format f, uint16_t bits)
{
    uint32_t digits = bits & ((1u << (f.precision - 1)) - 1);
    int field = (bits & 0x7fff) >> (f.precision - 1);
    long double sign = bits & 0x8000 ? -1.0L : 1.0L;
    if (field == f.emax + f.emax + 1) {
        return digits ? (long double)NAN : sign * (long double)INFINITY;
    }
    if (field > 0) {
        digits |= 1u << (f.precision - 1);
        field--;
    }
    return sign * ldexpl((long double)digits, field + f.emin - (f.precision - 1));
}

void dmt_encode(dm_dtype dtype, long double v, void *to)
{
    if (dtype == DM_F64) {
        double element = (double)v;
        memcpy(to, &element, sizeof element);
    } else if (dtype == DM_F32) {
        float element = (float)v;
        memcpy(to, &element, sizeof element);
    } else if (dtype == DM_I64) {
        int64_t element = (int64_t)v;
        memcpy(to, &element, sizeof element);
    } else if (dtype == DM_I32) {
        int32_t element = (int32_t)v;
        memcpy(to, &element, sizeof element);
    } else if (dtype == DM_U8) {
        *(uint8_t *)to = (uint8_t)v;
    } else {
        uint16_t element = encode_short(format_of(dtype), v);
        memcpy(to, &element, sizeof element);
    }
}

long double dmt_decode(dm_dtype dtype, const void *from)
{
    double f64;
    float f32;
    int64_t i64;
    int32_t i32;
    uint16_t bits;
    switch ((int)dtype) {
    case DM_F64:
        memcpy(&f64, from, sizeof f64);
        return f64;
    case DM_F32:
        memcpy(&f32, from, sizeof f32);
        return f32;
    case DM_I64:
        memcpy(&i64, from, sizeof i64);
        return (long double)i64;
    case DM_I32:
        memcpy(&i32, from, sizeof i32);
        return (long double)i32;
    case DM_U8:
        return *(const uint8_t *)from;
    default:
        memcpy(&bits, from, sizeof bits);
        return decode_short(format_of(dtype), bits);
    }
}
