/* Levels 1 and 2 on the session. Vectors are packed where their elements do not lie one after another. */
#include "blas.h"

#include <stdlib.h>
#include <string.h>

/* What a kind does. r, w: reads x or y, writes it; a: reads a matrix; c: updates one. */
typedef struct trait {
    bool rx, wx, ry, wy, a, c;
} trait;
static const trait traits[DMB_GEMM] = {
    [DMB_NRM2] = {.rx = 1},
    [DMB_ASUM] = {.rx = 1},
    [DMB_IAMAX] = {.rx = 1},
    [DMB_SCAL] = {.rx = 1, .wx = 1},
    [DMB_DOT] = {.rx = 1, .ry = 1},
    [DMB_DOTC] = {.rx = 1, .ry = 1},
    [DMB_COPY] = {.rx = 1, .wy = 1},
    [DMB_SWAP] = {.rx = 1, .wx = 1, .ry = 1, .wy = 1},
    [DMB_AXPY] = {.rx = 1, .ry = 1, .wy = 1},
    [DMB_ROT] = {.rx = 1, .wx = 1, .ry = 1, .wy = 1},
    [DMB_GEMV] = {.a = 1, .rx = 1, .ry = 1, .wy = 1},
    [DMB_SYMV] = {.a = 1, .rx = 1, .ry = 1, .wy = 1},
    [DMB_HEMV] = {.a = 1, .rx = 1, .ry = 1, .wy = 1},
    [DMB_GER] = {.c = 1, .rx = 1, .ry = 1},
    [DMB_GERC] = {.c = 1, .rx = 1, .ry = 1},
    [DMB_SYR] = {.c = 1, .rx = 1},
    [DMB_HER] = {.c = 1, .rx = 1},
    [DMB_SYR2] = {.c = 1, .rx = 1, .ry = 1},
    [DMB_HER2] = {.c = 1, .rx = 1, .ry = 1},
    [DMB_TRMV] = {.a = 1, .rx = 1, .wx = 1},
    [DMB_TRSV] = {.a = 1, .rx = 1, .wx = 1},
};

/* A vector of the caller, and its elements packed. */
typedef struct vector {
    void *at, *packed; /* packed: NULL where the caller's lie so */
    int64_t count, inc;
    bool conjugate; /* of what the call is for */
    dm_array array;
} vector;

/* conjugate[]: x and y are to be conjugated before the call, and what is written after it. By columns, a is the
 * transpose of a matrix by rows, and of Hermitian matrices, or of its conjugate transpose, the conjugate:
 * conj(a) x = conj(a conj(x)). */
static void by_rows(dmb_request *r, bool conjugate[2])
{
    void *kept = r->x;
    bool all = r->kind == DMB_HEMV || r->kind == DMB_HER || r->kind == DMB_HER2;
    switch (r->kind) {
    case DMB_GER:
    case DMB_GERC:
        r->x = r->y;
        r->y = kept;
        dmb_swap(&r->incx, &r->incy);
        dmb_swap(&r->m, &r->n);
        conjugate[0] = r->kind == DMB_GERC;
        r->kind = DMB_GER;
        return;
    case DMB_GEMV:
    case DMB_TRMV:
    case DMB_TRSV:
        all = r->trans[0] == DM_C && dmb_is_complex(r->dtype);
        r->trans[0] = r->trans[0] == DM_N ? DM_T : DM_N;
        dmb_swap(&r->m, &r->n);
        break;
    default:
        break;
    }
    r->uplo = 1 - r->uplo;
    if (all) {
        conjugate[0] = conjugate[1] = true;
        r->alpha.im = -r->alpha.im;
        r->beta.im = -r->beta.im;
    }
}

bool dmb_vectors_valid(const dmb_request *r)
{
    const trait *t = &traits[r->kind];
    if (r->m <= 0 || r->n <= 0 || (r->kind <= DMB_SCAL ? r->incx <= 0 : r->incx == 0) || !r->x ||
        ((t->ry || t->wy) && (r->incy == 0 || !r->y))) {
        return false;
    }
    bool factor = r->kind == DMB_AXPY || (r->kind >= DMB_GEMV && r->kind < DMB_TRMV);
    if (factor && dmb_is_zero(r->alpha)) { /* there may be no memory at a and x */
        return false;
    }
    if (!t->a && !t->c) {
        return true;
    }
    int64_t least = r->by_columns ? r->m : r->n;
    return r->by_columns >= 0 && r->uplo >= 0 && r->trans[0] >= 0 && r->diag >= 0 &&
           (t->a ? r->a && r->lda >= least : r->c && r->ldc >= least);
}

/* Between the caller's elements and the packed ones. */
static void move(dm_dtype dtype, const vector *v, bool in)
{
    size_t bytes = (size_t)dm_dtype_bytes(dtype);
    char *at = (char *)v->at + (v->inc < 0 ? (1 - v->count) * v->inc : 0) * (int64_t)bytes, *packed = v->packed;
    for (int64_t i = 0; i < v->count; i++) {
        char *element = at + i * v->inc * (int64_t)bytes, *to = in ? packed : element;
        memcpy(to, in ? element : packed, bytes);
        if (v->conjugate && dtype == DM_C128) {
            ((dm_c128 *)(void *)to)->im *= -1;
        } else if (v->conjugate) {
            ((dm_c64 *)(void *)to)->im *= -1;
        }
        packed += bytes;
    }
}

/* apart: packed in any case */
static dm_status put(dm_session *s, dm_dtype dtype, vector *v, bool read, bool apart)
{
    dm_layout rows = dm_layout_rows(s);
    dm_status status = dm_array_create(s, dtype, 1, &v->count, &rows, &v->array);
    if (status == DM_OK && (v->inc != 1 || v->conjugate || apart)) {
        v->packed = malloc((size_t)(v->count * dm_dtype_bytes(dtype)));
        status = v->packed ? DM_OK : DM_ERR_NOMEM;
    }
    if (status != DM_OK || !read) {
        return status;
    }
    if (v->packed) {
        move(dtype, v, true);
    }
    return dm_array_write(s, v->array, NULL, NULL, v->packed ? v->packed : v->at, 0);
}

static dm_status call(dm_session *s, const dmb_request *r, dm_array a, dm_array x, dm_array y, dm_array found)
{
    dm_factor alpha = dm_complex(r->alpha.re, r->alpha.im), beta = dm_complex(r->beta.re, r->beta.im);
    switch (r->kind) {
    case DMB_NRM2:
        return dm_nrm2(s, x, found);
    case DMB_ASUM:
        return dm_asum(s, x, found);
    case DMB_IAMAX:
        return dm_iamax(s, x, found);
    case DMB_SCAL:
        return dm_scale_by(s, alpha, x, x);
    case DMB_DOT:
        return dm_dot(s, x, y, found);
    case DMB_DOTC:
        return dm_dotc(s, x, y, found);
    case DMB_COPY:
        return dm_copy(s, x, y);
    case DMB_SWAP:
        return dm_swap(s, x, y);
    case DMB_AXPY:
        return dm_axpby_by(s, alpha, x, dm_value(1), y);
    case DMB_ROT:
        return dm_rot(s, x, y, r->alpha.re, r->beta.re);
    case DMB_GEMV:
        return dm_gemv_by(s, r->trans[0], alpha, a, x, beta, y);
    case DMB_SYMV:
        return dm_symv_by(s, r->uplo, alpha, a, x, beta, y);
    case DMB_HEMV:
        return dm_hemv_by(s, r->uplo, alpha, a, x, beta, y);
    case DMB_GER:
        return dm_ger_by(s, alpha, x, y, a);
    case DMB_GERC:
        return dm_gerc_by(s, alpha, x, y, a);
    case DMB_SYR:
        return dm_syr_by(s, r->uplo, alpha, x, a);
    case DMB_HER:
        return dm_her_by(s, r->uplo, alpha, x, a);
    case DMB_SYR2:
        return dm_syr2_by(s, r->uplo, alpha, x, y, a);
    case DMB_HER2:
        return dm_her2_by(s, r->uplo, alpha, x, y, a);
    case DMB_TRMV:
        return dm_trmv(s, r->uplo, r->trans[0], r->diag, a, x);
    default:
        return dm_trsv(s, r->uplo, r->trans[0], r->diag, a, x);
    }
}

/* Results come into memory of this file's own first where there are two of them. */
static dm_status read_back(dm_session *s, dmb_request *r, dm_array a, const vector v[2], dm_array found)
{
    const trait *t = &traits[r->kind];
    const bool write[2] = {t->wx, t->wy};
    dm_status status = DM_OK;
    if (t->c) {
        return dm_array_read(s, a, NULL, NULL, r->c, r->ldc);
    }
    if (found.id) {
        return dm_array_read(s, found, NULL, NULL, &r->found, 0);
    }
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        if (write[i]) {
            status = dm_array_read(s, v[i].array, NULL, NULL, v[i].packed ? v[i].packed : v[i].at, 0);
        }
    }
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        if (write[i] && v[i].packed) {
            move(r->dtype, &v[i], false);
        }
    }
    return status;
}

dm_status dmb_vectors_compute(dm_session *s, dmb_request *r)
{
    const trait *t = &traits[r->kind];
    bool complex_too = dmb_is_complex(r->dtype), conjugate[2] = {false, false};
    if (r->by_columns) {
        by_rows(r, conjugate);
    }
    bool wide = t->a && r->kind < DMB_TRMV && r->trans[0] == DM_N; /* x has the columns */
    vector v[2] = {
        {r->x, NULL, r->m, r->incx, conjugate[0], DM_NO_ARRAY},
        {r->y, NULL, r->n, r->incy, conjugate[1], DM_NO_ARRAY},
    };
    if (wide) {
        dmb_swap(&v[0].count, &v[1].count);
    }
    dmb_matrix m = {t->c ? r->c : r->a, r->m, r->n, t->c ? r->ldc : r->lda};
    dm_array a = DM_NO_ARRAY, found = DM_NO_ARRAY;
    dm_status status = t->a || t->c ? dmb_put(s, r->dtype, &m, &a) : DM_OK;
    status = status == DM_OK ? put(s, r->dtype, &v[0], t->rx, t->wx && t->wy) : status;
    if (status == DM_OK && (t->ry || t->wy)) {
        bool read = t->ry && !(t->wy && t->a && dmb_is_zero(r->beta));
        status = put(s, r->dtype, &v[1], read, t->wx && t->wy);
    }
    if (status == DM_OK && r->kind <= DMB_DOTC && r->kind != DMB_SCAL) {
        bool pair = complex_too && r->kind >= DMB_DOT;
        status = dm_array_create(s, pair ? DM_C128 : DM_F64, 0, NULL, NULL, &found);
    }
    status = status == DM_OK ? call(s, r, a, v[0].array, v[1].array, found) : status;
    status = status == DM_OK ? dm_sync(s) : status;
    status = status == DM_OK ? read_back(s, r, a, v, found) : status;
    free(v[0].packed);
    free(v[1].packed);
    return status;
}
