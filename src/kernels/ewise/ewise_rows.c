/* The table of elementwise rows, and the types they take. */
#include "kernels/ewise/ewise.h"

#include <string.h>

_Static_assert(DMI_EW_KINDS <= UINT8_MAX, "the number of a row is one byte in a program");

const dmi_ew_row dmi_ew_rows[DMI_EW_ROWS] = {
#define DMI_EW(name, form, domain, class, ...)                                                                 \
    {#name, DMI_FORM_##form, DMI_FORM_OPERANDS(DMI_FORM_##form), DMI_DOMAIN_##domain, DMI_##class, false},
#define DMI_EW_INNER(name, form, domain, class, ...)                                                           \
    {#name, DMI_FORM_##form, DMI_FORM_OPERANDS(DMI_FORM_##form), DMI_DOMAIN_##domain, DMI_##class, true},
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
};

int dmi_ew_find(const char *name, size_t length)
{
    for (int i = 0; i < DMI_EW_ROWS; i++) {
        if (!dmi_ew_rows[i].inner && strlen(dmi_ew_rows[i].name) == length &&
            memcmp(dmi_ew_rows[i].name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

/* The floating type that NumPy computes a function of an integer in: of quotients always f64. */
static dm_dtype float_of(int row, dm_dtype dtype)
{
    int64_t bytes = dmi_dtype_bytes(dtype);
    bool quotient = row == DMI_EW_divide || row == DMI_EW_reciprocal;
    return bytes > 2 || quotient ? DM_F64 : bytes == 1 ? DM_F16 : DM_F32;
}

static bool is_floating(dm_dtype dtype)
{
    return dmi_dtype_is_float(dtype) || dmi_dtype_is_complex(dtype);
}

/* What operands [first, end) promote to. Integers beside a float each meet the float, and not each other first.
 */
static dm_dtype promote_all(const dm_dtype *operand, int first, int end)
{
    dm_dtype t = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = first; i < end; i++) {
            if (is_floating(operand[i]) == (pass == 0)) {
                t = t ? dmi_dtype_promote(t, operand[i]) : operand[i];
            }
        }
    }
    return t;
}

bool dmi_ew_types(int row, const dm_dtype *operand, dm_dtype *taken, dm_dtype *result)
{
    const dmi_ew_row *r = &dmi_ew_rows[row];
    int first = r->form == DMI_FORM_CHOOSE;
    dm_dtype t = promote_all(operand, first, r->operands);
    if (r->domain == DMI_DOMAIN_LOGIC) {
        t = DM_BOOL;
    }
    if (t == DM_BOOL && !(r->domain >> DM_BOOL & 1) && r->domain >> DM_I32 & 1) {
        t = DM_I8;
    }
    if (!(r->domain >> dmi_dtype_carrier(t) & 1) && !is_floating(t)) {
        t = float_of(row, operand[first]);
        for (int i = first + 1; i < r->operands; i++) {
            t = dmi_dtype_promote(t, float_of(row, operand[i]));
        }
    }
    *taken = t;
    *result = r->form == DMI_FORM_TEST || r->form == DMI_FORM_COMPARE ? DM_BOOL
              : r->form == DMI_FORM_PART && dmi_dtype_is_complex(t)   ? (t == DM_C64 ? DM_F32 : DM_F64)
                                                                      : t;
    return r->domain >> dmi_dtype_carrier(t) & 1;
}

dmi_number dmi_number_of(double value)
{
    int64_t whole = value >= 0x1p63   ? INT64_MAX
                    : value < -0x1p63 ? INT64_MIN
                    : value == value  ? (int64_t)value
                                      : 0;
    return (dmi_number){.re = value, .whole = whole};
}
