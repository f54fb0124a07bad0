/* Linear algebra for `dmath bench`: BLAS' names, normalisation, distances, beside plain loops. The lower
 * triangle is meant where there is one. Slot 0 is c or the matrix that changes; 1: a; 2: b; vectors as in BLAS.
 */
#include "dmath_bench_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CALL(name, call)                                                                                       \
    static dm_status call_##name(tool_op *o)                                                                   \
    {                                                                                                          \
        return (call);                                                                                         \
    }

static dm_status loosely(tool_op *o, double flops, dm_status status)
{
    o->tolerance = o->dtype == DM_F64 ? 1e-9 : 1e-3;
    o->flops = flops;
    return status;
}

/* --- level 1 --- */

static dm_status two_to_one(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, o->dtype, -1, 1);
    status = TOOL_TRY(status, tool_op_vector(o, 2, o->dtype, -1, 1));
    return loosely(o, 0, TOOL_TRY(status, tool_op_result(o, 0, o->dtype, 0, NULL)));
}

static dm_status one_to_one(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, o->dtype, -1, 1);
    bool index = strcmp(o->row->name, "iamax") == 0;
    return loosely(o, 0, TOOL_TRY(status, tool_op_result(o, 0, index ? DM_I64 : o->dtype, 0, NULL)));
}

static dm_status two_vectors(tool_op *o)
{
    dm_status status = tool_op_vector(o, 1, o->dtype, -1, 1);
    return TOOL_TRY(status, tool_op_vector(o, 0, o->dtype, -1, 1));
}

static dm_status one_vector(tool_op *o)
{
    return tool_op_vector(o, 0, o->dtype, -1, 1);
}

CALL(dot, dm_dot(o->s, o->a[1], o->a[2], o->a[0]))
CALL(dotc, dm_dotc(o->s, o->a[1], o->a[2], o->a[0]))
CALL(nrm2, dm_nrm2(o->s, o->a[1], o->a[0]))
CALL(asum, dm_asum(o->s, o->a[1], o->a[0]))
CALL(iamax, dm_iamax(o->s, o->a[1], o->a[0]))
CALL(scal, dm_scal(o->s, -1, o->a[0]))
CALL(axpy, dm_axpy(o->s, 0.5, o->a[1], o->a[0]))
CALL(swap, dm_swap(o->s, o->a[1], o->a[0]))
CALL(rot, dm_rot(o->s, o->a[0], o->a[1], 0.6, 0.8))

#define LEVEL1(name, start, step, result)                                                                      \
    static void plain_##name(tool_op *o)                                                                       \
    {                                                                                                          \
        const double *x = o->h[1], *y = o->h[2];                                                               \
        double v = (start);                                                                                    \
        (void)y;                                                                                               \
        for (int64_t i = 0; i < o->n; i++) {                                                                   \
            step;                                                                                              \
        }                                                                                                      \
        o->want[0] = (result);                                                                                 \
    }
LEVEL1(dot, 0, v += x[i] * y[i], v)
LEVEL1(nrm2, 0, v += x[i] * x[i], sqrt(v))
LEVEL1(asum, 0, v += fabs(x[i]), v)
LEVEL1(iamax, 0, v = fabs(x[i]) > fabs(x[(int64_t)v]) ? (double)i : v, v)

#define EACH(name, value)                                                                                      \
    static void plain_##name(tool_op *o)                                                                       \
    {                                                                                                          \
        for (int64_t i = 0; i < o->count[0]; i++) {                                                            \
            o->want[i] = (value);                                                                              \
        }                                                                                                      \
    }
EACH(scal, -o->h[0][i])
EACH(axpy, 0.5 * o->h[1][i] + o->h[0][i])
EACH(swap, o->h[1][i])
EACH(rot, 0.6 * o->h[0][i] + 0.8 * o->h[1][i])

/* --- matrices --- */

/* Slots 0, 1 and 2 are matrices (m) or vectors (v) of `side`, or nothing (-). Triangles to multiply or solve
 * with are small beside their diagonals of ones, so that repeated calls go nowhere. */
static dm_status prepare(tool_op *o, const char kinds[3], bool small, double flops)
{
    dm_status status = DM_OK;
    double limit = small ? 1.0 / (double)o->side : 1;
    for (int i = 0; i < 3; i++) {
        double most = i == 1 ? limit : 1;
        if (kinds[i] == 'm') {
            status = TOOL_TRY(status, tool_op_matrix(o, i, o->dtype, -most, most));
        } else if (kinds[i] == 'v') {
            status = TOOL_TRY(status, tool_op_fill(o, i, o->dtype, 1, &o->side, -1, 1));
        }
    }
    o->result = 0;
    return loosely(o, flops, status);
}

static double cube(const tool_op *o)
{
    return (double)o->side * (double)o->side * (double)o->side;
}

#define PREPARE(name, kinds, small, flops)                                                                     \
    static dm_status prepare_##name(tool_op *o)                                                                \
    {                                                                                                          \
        return prepare(o, kinds, small, flops);                                                                \
    }
PREPARE(mmm, "mmm", false, 2 * cube(o))
PREPARE(half, "mm-", false, cube(o))
PREPARE(rank2k, "mmm", false, 2 * cube(o))
PREPARE(triangle, "mm-", true, cube(o))
PREPARE(vmv, "vmv", false, 0)
PREPARE(outer, "mvv", false, 0)
PREPARE(outer1, "mv-", false, 0)
PREPARE(solve, "vm-", true, 0)
PREPARE(one, "mm-", false, 0)

#define AT(matrix, i, j) ((matrix)[(i)*o->side + (j)])

/* Entry (i, j) of the symmetric matrix whose lower triangle is m's. */
static double symmetric(const tool_op *o, const double *m, int64_t i, int64_t j)
{
    return i >= j ? AT(m, i, j) : AT(m, j, i);
}

/* Of the lower triangle with ones on the diagonal. */
static double unit_lower(const tool_op *o, const double *m, int64_t i, int64_t j)
{
    return i > j ? AT(m, i, j) : i == j;
}

static double whole(const tool_op *o, const double *m, int64_t i, int64_t j)
{
    return AT(m, i, j);
}

static double transposed(const tool_op *o, const double *m, int64_t i, int64_t j)
{
    return AT(m, j, i);
}

typedef double entry(const tool_op *o, const double *m, int64_t i, int64_t j);

/* want += alpha f(a) g(b) */
static void multiply(tool_op *o, double alpha, const double *a, entry *f, const double *b, entry *g)
{
    int64_t n = o->side;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) {
            double factor = alpha * f(o, a, i, k);
            for (int64_t j = 0; j < n; j++) {
                AT(o->want, i, j) += factor * g(o, b, k, j);
            }
        }
    }
}

/* want = beta c, and later what was added to it in the lower triangle, c above it. */
static void begin(tool_op *o, double beta)
{
    for (int64_t i = 0; i < o->count[0]; i++) {
        o->want[i] = beta * o->h[0][i];
    }
}

static void keep_upper(tool_op *o)
{
    for (int64_t i = 0; i < o->side; i++) {
        for (int64_t j = i + 1; j < o->side; j++) {
            AT(o->want, i, j) = AT(o->h[0], i, j);
        }
    }
}

CALL(matmul, dm_matmul(o->s, o->a[1], o->a[2], o->a[0]))
CALL(gemm, dm_gemm(o->s, DM_T, DM_N, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(syrk, dm_syrk(o->s, DM_LOWER, DM_N, 2, o->a[1], 0.5, o->a[0]))
CALL(herk, dm_herk(o->s, DM_LOWER, DM_N, 2, o->a[1], 0.5, o->a[0]))
CALL(syr2k, dm_syr2k(o->s, DM_LOWER, DM_N, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(her2k, dm_her2k(o->s, DM_LOWER, DM_N, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(symm, dm_symm(o->s, DM_LEFT, DM_LOWER, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(hemm, dm_hemm(o->s, DM_LEFT, DM_LOWER, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(trmm, dm_trmm(o->s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, o->a[1], o->a[0]))
CALL(trsm, dm_trsm(o->s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, o->a[1], o->a[0]))
CALL(gemv, dm_gemv(o->s, DM_N, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(symv, dm_symv(o->s, DM_LOWER, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(hemv, dm_hemv(o->s, DM_LOWER, 2, o->a[1], o->a[2], 0.5, o->a[0]))
CALL(ger, dm_ger(o->s, 0.5, o->a[1], o->a[2], o->a[0]))
CALL(gerc, dm_gerc(o->s, 0.5, o->a[1], o->a[2], o->a[0]))
CALL(syr, dm_syr(o->s, DM_LOWER, 0.5, o->a[1], o->a[0]))
CALL(her, dm_her(o->s, DM_LOWER, 0.5, o->a[1], o->a[0]))
CALL(syr2, dm_syr2(o->s, DM_LOWER, 0.5, o->a[1], o->a[2], o->a[0]))
CALL(her2, dm_her2(o->s, DM_LOWER, 0.5, o->a[1], o->a[2], o->a[0]))
CALL(trmv, dm_trmv(o->s, DM_LOWER, DM_N, DM_UNIT, o->a[1], o->a[0]))
CALL(trsv, dm_trsv(o->s, DM_LOWER, DM_N, DM_UNIT, o->a[1], o->a[0]))
CALL(tril, dm_tril(o->s, o->a[1], o->a[0]))
CALL(triu, dm_triu(o->s, o->a[1], o->a[0]))
CALL(symmetrise, dm_symmetrise(o->s, DM_LOWER, 0, o->a[1], o->a[0]))

CALL(gemm_with, dm_gemm_with(o->s, DM_T, DM_N, 2, o->a[1], o->a[2], 0.5, o->a[0], NULL))
/* with factors that are elements */
#define ONE(value) tool_op_element(o, 4, value)
#define TWO(value) tool_op_element(o, 5, value)
CALL(rot_by, dm_rot_by(o->s, o->a[0], o->a[1], ONE(0.6), TWO(0.8)))
CALL(gemm_by, dm_gemm_by(o->s, DM_T, DM_N, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0], NULL))
CALL(syrk_by, dm_syrk_by(o->s, DM_LOWER, DM_N, ONE(2), o->a[1], TWO(0.5), o->a[0]))
CALL(herk_by, dm_herk_by(o->s, DM_LOWER, DM_N, ONE(2), o->a[1], TWO(0.5), o->a[0]))
CALL(syr2k_by, dm_syr2k_by(o->s, DM_LOWER, DM_N, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0]))
CALL(her2k_by, dm_her2k_by(o->s, DM_LOWER, DM_N, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0]))
CALL(symm_by, dm_symm_by(o->s, DM_LEFT, DM_LOWER, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0]))
CALL(hemm_by, dm_hemm_by(o->s, DM_LEFT, DM_LOWER, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0]))
CALL(trmm_by, dm_trmm_by(o->s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, ONE(1), o->a[1], o->a[0]))
CALL(trsm_by, dm_trsm_by(o->s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, ONE(1), o->a[1], o->a[0]))
CALL(gemv_by, dm_gemv_by(o->s, DM_N, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0]))
CALL(symv_by, dm_symv_by(o->s, DM_LOWER, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0]))
CALL(hemv_by, dm_hemv_by(o->s, DM_LOWER, ONE(2), o->a[1], o->a[2], TWO(0.5), o->a[0]))
CALL(ger_by, dm_ger_by(o->s, ONE(0.5), o->a[1], o->a[2], o->a[0]))
CALL(gerc_by, dm_gerc_by(o->s, ONE(0.5), o->a[1], o->a[2], o->a[0]))
CALL(syr_by, dm_syr_by(o->s, DM_LOWER, ONE(0.5), o->a[1], o->a[0]))
CALL(her_by, dm_her_by(o->s, DM_LOWER, ONE(0.5), o->a[1], o->a[0]))
CALL(syr2_by, dm_syr2_by(o->s, DM_LOWER, ONE(0.5), o->a[1], o->a[2], o->a[0]))
CALL(her2_by, dm_her2_by(o->s, DM_LOWER, ONE(0.5), o->a[1], o->a[2], o->a[0]))
CALL(cross_entropy_gradient_by, dm_cross_entropy_gradient_by(o->s, o->a[1], o->a[2], ONE(1), o->a[0]))

static void plain_matmul(tool_op *o)
{
    multiply(o, 1, o->h[1], whole, o->h[2], whole);
}

static void plain_gemm(tool_op *o)
{
    begin(o, 0.5);
    multiply(o, 2, o->h[1], transposed, o->h[2], whole);
}

static void plain_syrk(tool_op *o)
{
    begin(o, 0.5);
    multiply(o, 2, o->h[1], whole, o->h[1], transposed);
    keep_upper(o);
}

static void plain_syr2k(tool_op *o)
{
    begin(o, 0.5);
    multiply(o, 2, o->h[1], whole, o->h[2], transposed);
    multiply(o, 2, o->h[2], whole, o->h[1], transposed);
    keep_upper(o);
}

static void plain_symm(tool_op *o)
{
    begin(o, 0.5);
    multiply(o, 2, o->h[1], symmetric, o->h[2], whole);
}

static void plain_trmm(tool_op *o)
{
    multiply(o, 1, o->h[1], unit_lower, o->h[0], whole);
}

/* Of a vector one column. */
static void plain_trsm(tool_op *o)
{
    int64_t n = o->side, columns = o->count[0] / n;
    memcpy(o->want, o->h[0], (size_t)o->count[0] * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) {
            for (int64_t j = 0; j < columns; j++) {
                o->want[i * columns + j] -= AT(o->h[1], i, k) * o->want[k * columns + j];
            }
        }
    }
}

static void by_vector(tool_op *o, double alpha, entry *f, const double *x, double beta)
{
    begin(o, beta);
    for (int64_t i = 0; i < o->side; i++) {
        for (int64_t j = 0; j < o->side; j++) {
            o->want[i] += alpha * f(o, o->h[1], i, j) * x[j];
        }
    }
}

static void plain_gemv(tool_op *o)
{
    by_vector(o, 2, whole, o->h[2], 0.5);
}

static void plain_symv(tool_op *o)
{
    by_vector(o, 2, symmetric, o->h[2], 0.5);
}

static void plain_trmv(tool_op *o)
{
    by_vector(o, 1, unit_lower, o->h[0], 0);
}

#define ENTRIES(name, value)                                                                                   \
    static void plain_##name(tool_op *o)                                                                       \
    {                                                                                                          \
        for (int64_t i = 0; i < o->side; i++) {                                                                \
            for (int64_t j = 0; j < o->side; j++) {                                                            \
                AT(o->want, i, j) = (value);                                                                   \
            }                                                                                                  \
        }                                                                                                      \
    }
ENTRIES(ger, AT(o->h[0], i, j) + 0.5 * o->h[1][i] * o->h[2][j])
ENTRIES(syr, AT(o->h[0], i, j) + (i >= j ? 0.5 * o->h[1][i] * o->h[1][j] : 0))
ENTRIES(syr2, AT(o->h[0], i, j) + (i >= j ? 0.5 * (o->h[1][i] * o->h[2][j] + o->h[2][i] * o->h[1][j]) : 0))
ENTRIES(tril, i >= j ? AT(o->h[1], i, j) : 0)
ENTRIES(triu, i <= j ? AT(o->h[1], i, j) : 0)
ENTRIES(symmetrise, symmetric(o, o->h[1], i, j))

/* --- rows of a matrix: normalisation, losses, distances --- */

static dm_status prepare_labels(tool_op *o)
{
    dm_status status = tool_op_matrix(o, 1, o->dtype, -1, 1);
    status = TOOL_TRY(status, tool_op_fill(o, 2, DM_I32, 1, &o->side, 0, (double)o->side));
    bool loss = strcmp(o->row->name, "cross_entropy") == 0;
    return loosely(
        o, 0, TOOL_TRY(status, tool_op_result(o, 0, o->dtype, loss ? 1 : 2, (int64_t[]){o->side, o->side})));
}

static const int last[] = {1};
CALL(log_softmax, dm_log_softmax(o->s, o->a[1], last, 1, o->a[0]))
CALL(standardise, dm_standardise(o->s, o->a[1], last, 1, 0, o->a[0]))
CALL(layer_norm, dm_layer_norm(o->s, o->a[1], last, 1, DM_NO_ARRAY, DM_NO_ARRAY, 1e-3, o->a[0]))
CALL(cross_entropy, dm_cross_entropy(o->s, o->a[1], o->a[2], o->a[0]))
CALL(cross_entropy_gradient, dm_cross_entropy_gradient(o->s, o->a[1], o->a[2], 1, o->a[0]))
CALL(covariance, dm_covariance(o->s, o->a[1], DM_BY_ROWS, 0, o->a[0]))
CALL(distances, dm_distances(o->s, o->a[1], o->a[2], o->a[0]))
CALL(cosine_distances, dm_cosine_distances(o->s, o->a[1], o->a[2], o->a[0]))

static double log_sum(const tool_op *o, int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < o->side; j++) {
        sum += exp(AT(o->h[1], i, j));
    }
    return log(sum);
}

static double mean(const tool_op *o, int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < o->side; j++) {
        sum += AT(o->h[1], i, j);
    }
    return sum / (double)o->side;
}

/* The mean of (x - mean) (y - mean) of two rows. */
static double moment(const tool_op *o, int64_t i, int64_t k)
{
    double sum = 0, m = mean(o, i), l = mean(o, k);
    for (int64_t j = 0; j < o->side; j++) {
        sum += (AT(o->h[1], i, j) - m) * (AT(o->h[1], k, j) - l);
    }
    return sum / (double)o->side;
}

#define ROWS(name, before, value)                                                                              \
    static void plain_##name(tool_op *o)                                                                       \
    {                                                                                                          \
        for (int64_t i = 0; i < o->side; i++) {                                                                \
            before;                                                                                            \
            for (int64_t j = 0; j < o->side; j++) {                                                            \
                AT(o->want, i, j) = (value);                                                                   \
            }                                                                                                  \
        }                                                                                                      \
    }
ROWS(log_softmax, double l = log_sum(o, i), AT(o->h[1], i, j) - l)
ROWS(standardise, double m = mean(o, i);
     double d = sqrt(moment(o, i, i)), d > 0 ? (AT(o->h[1], i, j) - m) / d : 0)
ROWS(layer_norm, double m = mean(o, i); double d = sqrt(moment(o, i, i) + 1e-3), (AT(o->h[1], i, j) - m) / d)
ROWS(cross_entropy_gradient, double l = log_sum(o, i), exp(AT(o->h[1], i, j) - l) - (o->h[2][i] == (double)j))
ENTRIES(covariance, moment(o, i, j))

static void plain_cross_entropy(tool_op *o)
{
    for (int64_t i = 0; i < o->side; i++) {
        o->want[i] = log_sum(o, i) - AT(o->h[1], i, (int64_t)o->h[2][i]);
    }
}

static void plain_distances(tool_op *o)
{
    bool cosine = strcmp(o->row->name, "cosine_distances") == 0;
    for (int64_t i = 0; i < o->side; i++) {
        for (int64_t k = 0; k < o->side; k++) {
            double apart = 0, x2 = 0, y2 = 0, xy = 0;
            for (int64_t j = 0; j < o->side; j++) {
                double x = AT(o->h[1], i, j), y = AT(o->h[2], k, j);
                apart += (x - y) * (x - y);
                x2 += x * x;
                y2 += y * y;
                xy += x * y;
            }
            AT(o->want, i, k) = cosine ? 1 - xy / sqrt(x2 * y2) : sqrt(apart);
        }
    }
}

#define ROW(name, prepare, call, plain)                                                                        \
    {                                                                                                          \
#name, "linalg", prepare, call_##call, plain_##plain, NULL, NULL                                       \
    }
const tool_op_row tool_ops_linalg[] = {
    ROW(dot, two_to_one, dot, dot),
    ROW(dotc, two_to_one, dotc, dot),
    ROW(nrm2, one_to_one, nrm2, nrm2),
    ROW(asum, one_to_one, asum, asum),
    ROW(iamax, one_to_one, iamax, iamax),
    ROW(scal, one_vector, scal, scal),
    ROW(axpy, two_vectors, axpy, axpy),
    ROW(swap, two_vectors, swap, swap),
    ROW(rot, two_vectors, rot, rot),
    ROW(gemv, prepare_vmv, gemv, gemv),
    ROW(symv, prepare_vmv, symv, symv),
    ROW(hemv, prepare_vmv, hemv, symv),
    ROW(ger, prepare_outer, ger, ger),
    ROW(gerc, prepare_outer, gerc, ger),
    ROW(syr, prepare_outer1, syr, syr),
    ROW(her, prepare_outer1, her, syr),
    ROW(syr2, prepare_outer, syr2, syr2),
    ROW(her2, prepare_outer, her2, syr2),
    ROW(trmv, prepare_solve, trmv, trmv),
    ROW(trsv, prepare_solve, trsv, trsm),
    ROW(matmul, prepare_mmm, matmul, matmul),
    ROW(gemm, prepare_mmm, gemm, gemm),
    ROW(syrk, prepare_half, syrk, syrk),
    ROW(herk, prepare_half, herk, syrk),
    ROW(syr2k, prepare_rank2k, syr2k, syr2k),
    ROW(her2k, prepare_rank2k, her2k, syr2k),
    ROW(symm, prepare_mmm, symm, symm),
    ROW(hemm, prepare_mmm, hemm, symm),
    ROW(trmm, prepare_triangle, trmm, trmm),
    ROW(trsm, prepare_triangle, trsm, trsm),
    ROW(tril, prepare_one, tril, tril),
    ROW(triu, prepare_one, triu, triu),
    ROW(symmetrise, prepare_one, symmetrise, symmetrise),
    ROW(log_softmax, prepare_one, log_softmax, log_softmax),
    ROW(standardise, prepare_one, standardise, standardise),
    ROW(layer_norm, prepare_one, layer_norm, layer_norm),
    ROW(cross_entropy, prepare_labels, cross_entropy, cross_entropy),
    ROW(cross_entropy_gradient, prepare_labels, cross_entropy_gradient, cross_entropy_gradient),
    ROW(covariance, prepare_half, covariance, covariance),
    ROW(distances, prepare_mmm, distances, distances),
    ROW(cosine_distances, prepare_mmm, cosine_distances, distances),
    ROW(gemm_with, prepare_mmm, gemm_with, gemm),
    ROW(rot_by, two_vectors, rot_by, rot),
    ROW(gemm_by, prepare_mmm, gemm_by, gemm),
    ROW(gemv_by, prepare_vmv, gemv_by, gemv),
    ROW(symv_by, prepare_vmv, symv_by, symv),
    ROW(hemv_by, prepare_vmv, hemv_by, symv),
    ROW(ger_by, prepare_outer, ger_by, ger),
    ROW(gerc_by, prepare_outer, gerc_by, ger),
    ROW(syr_by, prepare_outer1, syr_by, syr),
    ROW(her_by, prepare_outer1, her_by, syr),
    ROW(syr2_by, prepare_outer, syr2_by, syr2),
    ROW(her2_by, prepare_outer, her2_by, syr2),
    ROW(syrk_by, prepare_half, syrk_by, syrk),
    ROW(herk_by, prepare_half, herk_by, syrk),
    ROW(syr2k_by, prepare_rank2k, syr2k_by, syr2k),
    ROW(her2k_by, prepare_rank2k, her2k_by, syr2k),
    ROW(symm_by, prepare_mmm, symm_by, symm),
    ROW(hemm_by, prepare_mmm, hemm_by, symm),
    ROW(trmm_by, prepare_triangle, trmm_by, trmm),
    ROW(trsm_by, prepare_triangle, trsm_by, trsm),
    ROW(cross_entropy_gradient_by, prepare_labels, cross_entropy_gradient_by, cross_entropy_gradient),
    {0},
};
