#include "support/matrix.h"

#include <dmath/linalg.h>
#include <math.h>
#include <string.h>

bool dmt_is_complex(dm_dtype dtype)
{
    return dtype == DM_C64 || dtype == DM_C128;
}

dm_dtype dmt_blas_random(dmt_case *c)
{
    static const dm_dtype types[] = {DM_F64, DM_F32, DM_C64, DM_C128};
    return types[dmt_int(&c->random, 0, 3)];
}

long double dmt_blas_eps(dm_dtype dtype)
{
    return dtype == DM_F64 || dtype == DM_C128 ? 0x1p-52L : 0x1p-23L;
}

static dmt_number rounded(dm_dtype dtype, long double re, long double im)
{
    bool wide = dtype == DM_F64 || dtype == DM_C128;
    return CMPLXL(wide ? (double)re : (float)re, !dmt_is_complex(dtype) ? 0 : wide ? (double)im : (float)im);
}

static dmt_number random_number(dmt_case *c, dm_dtype dtype)
{
    long double re = 2 * (long double)dmt_unit(&c->random) - 1, im = 2 * (long double)dmt_unit(&c->random) - 1;
    return rounded(dtype, re, im);
}

dmt_matrix *dmt_matrix_make(dmt_case *c, const char *name, dm_dtype dtype, int ndim, int64_t rows, int64_t cols)
{
    dmt_matrix *m = dmt_alloc(&c->scratch, (int64_t)sizeof *m);
    *m = (dmt_matrix){.name = name, .dtype = dtype, .ndim = ndim, .rows = rows, .cols = ndim == 1 ? 1 : cols};
    m->v = dmt_alloc(&c->scratch, (rows * m->cols + 1) * (int64_t)sizeof *m->v);
    for (int64_t i = 0; i < rows * m->cols; i++) {
        m->v[i] = random_number(c, dtype);
    }
    return m;
}

static void encode(dm_dtype dtype, const dmt_number *v, int64_t count, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        double re = (double)creall(v[i]), im = (double)cimagl(v[i]);
        if (dtype == DM_F64) {
            ((double *)to)[i] = re;
        } else if (dtype == DM_F32) {
            ((float *)to)[i] = (float)re;
        } else if (dtype == DM_C128) {
            ((dm_c128 *)to)[i] = (dm_c128){re, im};
        } else {
            ((dm_c64 *)to)[i] = (dm_c64){(float)re, (float)im};
        }
    }
}

static dmt_number decode(dm_dtype dtype, const void *from, int64_t i)
{
    if (dtype == DM_F64 || dtype == DM_F32) {
        return dtype == DM_F64 ? ((const double *)from)[i] : ((const float *)from)[i];
    }
    const dm_c128 *wide = from;
    const dm_c64 *narrow = from;
    return dtype == DM_C128 ? CMPLXL(wide[i].re, wide[i].im) : CMPLXL(narrow[i].re, narrow[i].im);
}

/* Of element i, j in the base. */
static int64_t place_of(const dmt_matrix *m, int64_t i, int64_t j)
{
    return (m->lo[0] + i * m->step[0]) * m->base_cols + m->lo[1] + j * m->step[1];
}

void dmt_matrix_place(dmt_case *c, dmt_matrix *m)
{
    bool view = dmt_chance(&c->random, 40), steps = view && dmt_chance(&c->random, 30);
    int64_t extents[2] = {m->rows, m->cols}, size[2];
    for (int d = 0; d < 2; d++) {
        int64_t more = view && d < m->ndim ? dmt_int(&c->random, 0, 5) : 0;
        m->step[d] = steps && d < m->ndim ? dmt_int(&c->random, 1, 3) : 1;
        m->lo[d] = dmt_int(&c->random, 0, more);
        size[d] = more + (extents[d] > 0 ? (extents[d] - 1) * m->step[d] + 1 : 0);
    }
    m->base_rows = size[0];
    m->base_cols = size[1];
    int64_t count = m->base_rows * m->base_cols, shape[2] = {m->base_rows, m->base_cols},
            extent[2] = {m->rows, m->cols};
    m->base_v = dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof *m->base_v);
    for (int64_t i = 0; i < count; i++) {
        m->base_v[i] = random_number(c, m->dtype);
    }
    for (int64_t i = 0; i < m->rows * m->cols; i++) {
        m->v[i] = rounded(m->dtype, creall(m->v[i]), cimagl(m->v[i]));
    }
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t j = 0; j < m->cols; j++) {
            m->base_v[place_of(m, i, j)] = m->v[i * m->cols + j];
        }
    }
    dmt_layout layout;
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, m->ndim, shape);
    DMT_OK(c, dm_array_create(c->session, m->dtype, m->ndim, shape, layout.use, &m->base));
    void *bytes = dmt_alloc(&c->scratch, (count + 1) * 16);
    encode(m->dtype, m->base_v, count, bytes);
    DMT_OK(c, dm_array_write(c->session, m->base, NULL, NULL, bytes, 0));
    m->array = m->base;
    if (view) {
        DMT_OK(c, steps ? dm_array_slice(c->session, m->base, m->lo, extent, m->step, &m->array)
                        : dm_array_view(c->session, m->base, m->lo, extent, &m->array));
    }
    dmt_say(c, "\n    %s: %s %dx%d%s, %s", m->name, dm_dtype_name(m->dtype), (int)m->rows, (int)m->cols,
            steps  ? " (a view with steps)"
            : view ? " (a view)"
                   : "",
            layout.text);
}

void dmt_matrix_end(dmt_case *c, dmt_matrix *m)
{
    if (m->array.id != m->base.id) {
        DMT_OK(c, dm_array_destroy(c->session, m->array));
    }
    DMT_OK(c, dm_array_destroy(c->session, m->base));
}

static dmt_number *read_base(dmt_case *c, const dmt_matrix *m)
{
    int64_t count = m->base_rows * m->base_cols;
    dmt_number *got = dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof *got);
    void *bytes = dmt_alloc(&c->scratch, (count + 1) * 16);
    DMT_OK(c, dm_array_read(c->session, m->base, NULL, NULL, bytes, 0));
    for (int64_t i = 0; i < count; i++) {
        got[i] = decode(m->dtype, bytes, i);
    }
    return got;
}

/* The element of the matrix at this place of the base; -1: none. */
static int64_t element_at(const dmt_matrix *m, int64_t row, int64_t col)
{
    int64_t i = row - m->lo[0], j = col - m->lo[1];
    bool in = i >= 0 && j >= 0 && i % m->step[0] == 0 && j % m->step[1] == 0 && i / m->step[0] < m->rows &&
              j / m->step[1] < m->cols;
    return in ? i / m->step[0] * m->cols + j / m->step[1] : -1;
}

dmt_number *dmt_matrix_read(dmt_case *c, const dmt_matrix *m)
{
    dmt_number *base = read_base(c, m),
               *got = dmt_alloc(&c->scratch, (m->rows * m->cols + 1) * (int64_t)sizeof *got);
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t j = 0; j < m->cols; j++) {
            got[i * m->cols + j] = base[place_of(m, i, j)];
        }
    }
    return got;
}

static bool near(long double got, long double want, long double bound)
{
    return isnan(want) ? isnan(got) : got == want || fabsl(got - want) <= bound;
}

void dmt_matrix_check(dmt_case *c, const dmt_matrix *m, const dmt_number *want, const long double *bound)
{
    const dmt_number *got = read_base(c, m);
    for (int64_t i = 0; i < m->base_rows; i++) {
        for (int64_t j = 0; j < m->base_cols; j++) {
            int64_t at = element_at(m, i, j);
            bool in = at >= 0;
            dmt_number g = got[i * m->base_cols + j], w = in ? want[at] : m->base_v[i * m->base_cols + j];
            long double b = in && bound ? bound[at] : 0;
            if (!near(creall(g), creall(w), b) || !near(cimagl(g), cimagl(w), b)) {
                dmt_fail(c, "%s[%d, %d]%s is %.17Lg%+.17Lgi, not %.17Lg%+.17Lgi to %Lg", m->name,
                         (int)(i - m->lo[0]), (int)(j - m->lo[1]), in ? "" : " outside the view", creall(g),
                         cimagl(g), creall(w), cimagl(w), b);
            }
        }
    }
}

void dmt_matrix_unchanged(dmt_case *c, const dmt_matrix *m)
{
    dmt_matrix_check(c, m, m->v, NULL);
}

dmt_number dmt_matrix_at(const dmt_matrix *m, int trans, int64_t i, int64_t j)
{
    dmt_number v = trans ? m->v[j * m->cols + i] : m->v[i * m->cols + j];
    return trans == DM_C ? conjl(v) : v;
}

int64_t dmt_blas_extent(dmt_case *c)
{
    int kind = (int)dmt_int(&c->random, 0, 19);
    return kind == 0 ? 0 : kind == 1 ? dmt_int(&c->random, 129, 300) : dmt_int(&c->random, 1, 40);
}

double dmt_blas_factor(dmt_case *c)
{
    static const double some[] = {0, 1, -1, 0.5, -1.25};
    return some[dmt_int(&c->random, 0, 4)];
}

dmt_blas_by dmt_blas_by_make(dmt_case *c, const char *name, dm_dtype dtype, bool real)
{
    double number = dmt_blas_factor(c);
    bool has_parts = dmt_is_complex(dtype) && !real && dmt_chance(&c->random, 50);
    dmt_blas_by f = {.plain = true, .number = number, .given = dm_value(number), .value = number};
    if (dmt_chance(&c->random, 40)) {
        dmt_say(c, "\n    %s: the number %g", name, number);
        return f;
    }
    f.plain = false;
    if (has_parts) {
        f.given = dm_complex(number, 0.75);
        f.value = number + 0.75L * _Complex_I;
    }
    if (number != 0 && dmt_chance(&c->random, 75)) {
        dm_dtype type = has_parts ? (dmt_chance(&c->random, 50) ? DM_C64 : DM_C128)
                                  : (dmt_chance(&c->random, 50) ? DM_F64 : DM_F32);
        f.element = dmt_matrix_make(c, name, type, 2, 1, 1);
        f.element->v[0] = f.value;
        dmt_matrix_place(c, f.element);
        f.given = dm_element(f.element->array);
    }
    dmt_say(c, "\n    %s: %s, %g%+gi", name, f.element ? "an element" : "a factor", (double)creall(f.value),
            (double)cimagl(f.value));
    return f;
}

void dmt_blas_by_match(dmt_blas_by *a, dmt_blas_by *b)
{
    a->plain = b->plain = a->plain && b->plain;
}

void dmt_blas_by_end(dmt_case *c, dmt_blas_by *f)
{
    if (f->element) {
        dmt_matrix_unchanged(c, f->element);
        dmt_matrix_end(c, f->element);
    }
}

bool dmt_in_triangle(int uplo, bool unit, int64_t i, int64_t j)
{
    return i == j ? !unit : uplo == DM_LOWER ? i > j : i < j;
}

void dmt_matrix_spoil(dmt_matrix *m, int uplo, bool unit)
{
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t j = 0; j < m->cols; j++) {
            m->v[i * m->cols + j] = dmt_in_triangle(uplo, unit, i, j) ? m->v[i * m->cols + j] : (dmt_number)NAN;
        }
    }
}

dmt_matrix_sums dmt_matrix_sums_make(dmt_case *c, int64_t count)
{
    return (dmt_matrix_sums){dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof(dmt_number)),
                             dmt_alloc(&c->scratch, (count + 1) * (int64_t)sizeof(long double))};
}

void dmt_matrix_sums_add(dmt_matrix_sums *s, int64_t at, dmt_number v)
{
    s->v[at] += v;
    s->size[at] += cabsl(v);
}

void dmt_matrix_sums_end(dmt_matrix_sums *s, int64_t count, dm_dtype dtype, int64_t k)
{
    for (int64_t i = 0; i < count; i++) {
        s->size[i] *= (4 + 2 * (long double)k) * dmt_blas_eps(dtype);
    }
}
