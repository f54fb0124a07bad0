#include "api/blas.h"
#include "ops/messages.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[] = {"a", "b", "c", "x", "y"};
static const char *name_of(char letter)
{
    for (int i = 0; i < DMI_COUNT(names); i++) {
        if (names[i][0] == letter) {
            return names[i];
        }
    }
    return "out";
}

static dm_status check_type(const dmi_blas *q, int i)
{
    dm_dtype dtype = q->x[i].desc.dtype;
    if (!(DMI_DT_SOLVE >> dtype & 1)) {
        return dmi_refuse_dtype(name_of(q->name[i]), dtype, DMI_DT_SOLVE);
    }
    if (dtype != q->x[0].desc.dtype) {
        return dmi_fail(DM_ERR_DTYPE, "%s has dtype %s, but %s has %s", name_of(q->name[i]),
                        dmi_dtype_name(dtype), name_of(q->name[0]), dmi_dtype_name(q->x[0].desc.dtype));
    }
    return DM_OK;
}

dm_status dmi_blas_begin(dm_session *session, const char *letters, const int *ndim, const dm_array *arrays,
                         dmi_blas *out)
{
    *out = (dmi_blas){.session = session, .count = (int)strlen(letters)};
    dm_status status = dmi_enter(session, &out->s);
    for (int i = 0; i < out->count && status == DM_OK; i++) {
        const dmi_desc *x = &out->x[i].desc;
        out->name[i] = letters[i];
        out->array[i] = arrays[i];
        status = dmi_operand_find(out->s, arrays[i], name_of(letters[i]), &out->x[i]);
        if (status == DM_OK && x->ndim != ndim[i]) {
            status = dmi_fail(DM_ERR_SHAPE, "%s has %d dims, not %d", name_of(letters[i]), x->ndim, ndim[i]);
        }
        if (status != DM_OK) {
            return status;
        }
        status = check_type(out, i);
    }
    for (int i = 0; i < out->count - 1 && status == DM_OK; i++) {
        if (dmi_operands_overlap(&out->x[i], &out->x[out->count - 1]) != DMI_APART) {
            status = dmi_fail(DM_ERR_OVERLAP, "%s and %s share memory", name_of(letters[i]),
                              name_of(letters[out->count - 1]));
        }
    }
    if (status == DM_OK) {
        out->dtype = out->x[0].desc.dtype;
        out->complex = dmi_dtype_is_complex(out->dtype);
    }
    return status;
}

int64_t dmi_blas_extent(const dmi_blas *q, int i, int dim)
{
    return q->x[i].desc.extent[dim];
}

dm_status dmi_blas_shape(const dmi_blas *q, int i, int64_t rows, int64_t cols)
{
    const dmi_desc *x = &q->x[i].desc;
    char text[192];
    if (x->extent[0] == rows && (x->ndim == 1 || x->extent[1] == cols)) {
        return DM_OK;
    }
    if (x->ndim == 1) {
        return dmi_fail(DM_ERR_SHAPE, "%s has %" PRId64 " elements, not %" PRId64, name_of(q->name[i]),
                        x->extent[0], rows);
    }
    return dmi_fail(DM_ERR_SHAPE, "%s is %s, not %" PRId64 "x%" PRId64, name_of(q->name[i]),
                    dmi_shape_text(x, text), rows, cols);
}

dm_status dmi_blas_flag(const char *what, int value, int most)
{
    return value >= 0 && value <= most ? DM_OK
                                       : dmi_fail(DM_ERR_ARG, "%s is %d, not 0 to %d", what, value, most);
}

dm_status dmi_blas_factor(const dmi_blas *q, const char *what, const dm_factor *f, bool real)
{
    int out = q->count - 1;
    return dmi_part_factor(q->session, what, f, real ? dmi_dtype_part(q->dtype) : q->dtype,
                           name_of(q->name[out]), &q->x[out]);
}

dm_status dmi_blas_end(dm_session *session, dm_status status)
{
    dm_status ended = dm_scope_end(session, NULL, 0);
    return status == DM_OK ? ended : status;
}

dm_status dmi_blas_temporary(dm_session *session, dm_dtype dtype, int64_t rows, int64_t cols, dm_array *out)
{
    return dm_matrix(session, dtype, rows, cols, out);
}

dm_status dmi_blas_block(dm_session *session, dm_array a, int64_t r, int64_t rows, int64_t c, int64_t cols,
                         dm_array *out)
{
    return dm_array_view(session, a, (int64_t[]){r, c}, (int64_t[]){rows, cols}, out);
}

int64_t dmi_blas_half(int64_t n)
{
    return (n / 2 + DMI_BLAS_BLOCK - 1) / DMI_BLAS_BLOCK * DMI_BLAS_BLOCK;
}

dm_status dmi_blas_masked(dm_session *session, const char *text, dm_array w, const dm_factor *beta,
                          dm_array out)
{
    dmi_chain_name name[5] = {{"w", .array = w},
                              {"i", .kind = DMI_CHAIN_INDEX, .dim = 0},
                              {"j", .kind = DMI_CHAIN_INDEX, .dim = 1},
                              {"c", .array = out}};
    if (beta) {
        name[4] = dmi_chain_factor("beta", beta);
    }
    const dmi_chain_text texts[] = {{NULL, text}};
    const dmi_chain_call chain = {beta ? 5 : 3, 1, name, texts, NULL, 0, 0};
    return dmi_chain_submit(session, &chain, out);
}
