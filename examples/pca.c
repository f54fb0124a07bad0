/* Principal components of a matrix whose rows are samples and whose columns are features.
 *
 *     pca [file.npy] [-k components] [-o outdir]
 *     pca --rows M --cols N [--rank R] [--save-data] [-k components] [-o outdir]
 *
 * The matrix stays on the workers; only the covariance and the components pass through this program. Nothing
 * below says how many workers there are or where they run. */
#include "common/plot.h"
#include "common/support.h"

#include <dmath/check.h>
#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>

/* Rows around a subspace of the given rank, with noise: rows x rank times rank x cols, plus 0.1 normal. */
static dm_array generate(dm_session *s, const options *o)
{
    dm_array a, b, x;
    DM_CHECK(dm_matrix(s, DM_F64, o->rows, o->rank, &a));
    DM_CHECK(dm_matrix(s, DM_F64, o->rank, o->cols, &b));
    DM_CHECK(dm_matrix(s, DM_F64, o->rows, o->cols, &x));
    DM_CHECK(dm_fill_normal(s, a, 0, 1, 1));
    DM_CHECK(dm_fill_normal(s, b, 0, 1, 2));
    DM_CHECK(dm_fill_normal(s, x, 0, 0.1, 3));
    DM_CHECK(dm_gemm(s, DM_N, DM_N, 1, a, b, 1, x));
    DM_CHECK(dm_array_destroy(s, a));
    DM_CHECK(dm_array_destroy(s, b));
    return x;
}

/* A matrix from a file; what is not f32 or f64 already becomes f64. */
static dm_array load(dm_session *s, const char *path)
{
    dm_array x, converted;
    dm_array_info info = {.size = sizeof info};
    DM_CHECK(dm_array_load(s, path, NULL, &x));
    DM_CHECK(dm_array_query(s, x, &info));
    if (info.ndim != 2) {
        die("%s: a matrix is needed, this has %d dims", path, info.ndim);
    }
    if (info.dtype == DM_F64 || info.dtype == DM_F32) {
        return x;
    }
    DM_CHECK(dm_matrix(s, DM_F64, info.shape[0], info.shape[1], &converted));
    DM_CHECK(dm_copy(s, x, converted));
    DM_CHECK(dm_array_destroy(s, x));
    return converted;
}

/* The class of each row, or NULL where there is no file of m labels. */
static uint8_t *load_labels(dm_session *s, const char *path, int64_t m)
{
    dm_array labels;
    dm_array_info info = {.size = sizeof info};
    if (!file_exists(path)) {
        return NULL;
    }
    DM_CHECK(dm_array_load(s, path, NULL, &labels));
    DM_CHECK(dm_array_query(s, labels, &info));
    uint8_t *out = NULL;
    if (info.dtype == DM_U8 && info.ndim == 1 && info.shape[0] == m) {
        out = allocate(m, sizeof *out);
        DM_CHECK(dm_array_read(s, labels, NULL, NULL, out, 0));
    }
    DM_CHECK(dm_array_destroy(s, labels));
    return out;
}

static void plot_projections(dm_session *s, dm_array projections, int64_t m, const options *o)
{
    int64_t first[] = {0, 0}, extent[] = {m < 20000 ? m : 20000, 2};
    double *points = allocate(2 * extent[0], sizeof *points);
    uint8_t *labels = o->labels[0] ? load_labels(s, o->labels, m) : NULL;
    DM_CHECK(dm_array_read(s, projections, first, extent, points, 0));
    plot p = {"Projection onto the first two principal components",
              "component 1",
              "component 2",
              extent[0],
              points,
              labels};
    if (plot_save(&p, in_folder(o, "pca.svg")) != 0) {
        die("%s: cannot be written", in_folder(o, "pca.svg"));
    }
    free(labels);
    free(points);
}

int main(int argc, char **argv)
{
    dm_session *s;
    DM_CHECK(dm_init(NULL, &s));
    options o = parse_options(argc, argv);
    dm_array x = o.file ? load(s, o.file) : generate(s, &o);
    if (o.save_data) {
        DM_CHECK(dm_array_save(s, x, in_folder(&o, "data.npy")));
    }
    dm_array_info info = {.size = sizeof info};
    DM_CHECK(dm_array_query(s, x, &info));
    int64_t m = info.shape[0], n = info.shape[1], k = o.k < n ? o.k : n;
    if (m < 2 || n < 1) {
        die("at least two rows and one column are needed, here are %lld x %lld", (long long)m, (long long)n);
    }

    dm_array mean, covariance, variance, components, projections;
    DM_CHECK(dm_vector(s, DM_F64, n, &mean));
    DM_CHECK(dm_matrix(s, DM_F64, n, n, &covariance));
    DM_CHECK(dm_sum(s, x, (int[]){0}, 1, 1.0 / (double)m, 0, mean));
    DM_CHECK(dm_add(s, 1, x, -1, mean, x)); /* the mean is repeated for every row */
    DM_CHECK(dm_gemm(s, DM_T, DM_N, 1.0 / (double)(m - 1), x, x, 0, covariance));

    double *vectors = allocate(n * n, sizeof *vectors), *values = allocate(n, sizeof *values);
    DM_CHECK(dm_array_read(s, covariance, NULL, NULL, vectors, 0));
    symmetric_eigen((int)n, vectors, values); /* row i of vectors: the component of the i-th largest value */

    DM_CHECK(dm_vector(s, DM_F64, n, &variance));
    DM_CHECK(dm_matrix(s, DM_F64, k, n, &components));
    DM_CHECK(dm_matrix(s, DM_F64, m, k, &projections));
    DM_CHECK(dm_array_write(s, variance, NULL, NULL, values, 0));
    DM_CHECK(dm_array_write(s, components, NULL, NULL, vectors, 0));
    DM_CHECK(dm_gemm(s, DM_N, DM_T, 1, x, components, 0, projections));

    DM_CHECK(dm_array_save(s, variance, in_folder(&o, "explained_variance.npy")));
    DM_CHECK(dm_array_save(s, components, in_folder(&o, "components.npy")));
    DM_CHECK(dm_array_save(s, projections, in_folder(&o, "projections.npy")));
    printf("%lld samples of %lld features on %d workers\n", (long long)m, (long long)n, dm_workers(s));
    print_variance(values, n, k);
    if (k >= 2) {
        plot_projections(s, projections, m, &o);
    }
    printf("results are in %s\n", o.outdir);
    free(vectors);
    free(values);
    dm_array all[] = {x, mean, covariance, variance, components, projections};
    for (int i = 0; i < 6; i++) {
        DM_CHECK(dm_array_destroy(s, all[i]));
    }
    DM_CHECK(dm_finalize(s, NULL));
    return 0;
}
