/* Elementwise expressions: any text is an error with a place, or a program. The first byte chooses the names that there are. */
#include "expr/expr.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const dmi_expr_variable known[] = {
        {"a", DMI_EXPR_ARRAY, DM_F64, 0, 0}, {"i", DMI_EXPR_ARRAY, DM_I32, 0, 0}, {"b", DMI_EXPR_ARRAY, DM_BOOL, 0, 0},
        {"z", DMI_EXPR_ARRAY, DM_C64, 0, 0}, {"h", DMI_EXPR_ARRAY, DM_BF16, 0, 0}, {"s", DMI_EXPR_NUMBER, DM_F64, 2.5, 0},
        {"n", DMI_EXPR_INTEGER, DM_I64, 0, 3}};
    dmi_expr_variable variable[DMI_COUNT(known)];
    int count = 0;
    if (size == 0) {
        return 0;
    }
    for (int i = 0; i < DMI_COUNT(known); i++) {
        if (data[0] >> i & 1) {
            variable[count++] = known[i];
        }
    }
    char *text = exactly(data + 1, size - 1, 1);
    dmi_expr e;
    (void)dmi_expr_reduces(text);
    if (dmi_expr_compile(text, count, variable, data[0] & 0x80 ? DM_F32 : DM_F64, &e) == DM_OK) {
        int32_t reduced;
        HOLDS(e.dims >= 0 && e.dims <= DM_MAX_DIMS && memchr(e.target, 0, sizeof e.target));
        for (int ndim = 0; ndim <= DM_MAX_DIMS && e.reduction; ndim++) {
            (void)!dmi_expr_reduced(&e, text, ndim, &reduced);
        }
    } else {
        HOLDS(dmi_error_text()[0] != 0);
    }
    free(text);
    return 0;
}
