/* ScaLAPACK's pdgemm on the ranks of an MPI job, for comparison: pdgemm N ROUNDS [BLOCK]. Prints the median time. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void Cblacs_pinfo(int *rank, int *ranks);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);
void Cblacs_gridexit(int context);
int numroc_(const int *n, const int *nb, const int *p, const int *source, const int *np);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *rsrc, const int *csrc,
               const int *context, const int *lld, int *info);
void pdgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha, const double *a,
             const int *ia, const int *ja, const int *desca, const double *b, const int *ib, const int *jb,
             const int *descb, const double *beta, double *c, const int *ic, const int *jc, const int *descc);

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void fill(double *p, int64_t count, unsigned seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (double)(seed >> 8) / 8388608.0 - 1.0;
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4096, rounds = argc > 2 ? atoi(argv[2]) : 5, nb = argc > 3 ? atoi(argv[3]) : 128;
    int rank, ranks, context, prow = 1, pcol, row, col, zero = 0, one = 1, info, desc[9];
    MPI_Init(&argc, &argv);
    Cblacs_pinfo(&rank, &ranks);
    for (int p = 1; p * p <= ranks; p++) {
        prow = ranks % p == 0 ? p : prow;
    }
    pcol = ranks / prow;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", prow, pcol);
    Cblacs_gridinfo(context, &prow, &pcol, &row, &col);
    int rows = numroc_(&n, &nb, &row, &zero, &prow), cols = numroc_(&n, &nb, &col, &zero, &pcol);
    int lld = rows > 1 ? rows : 1;
    descinit_(desc, &n, &n, &nb, &nb, &zero, &zero, &context, &lld, &info);
    int64_t count = (int64_t)lld * (cols > 0 ? cols : 1);
    double *a = malloc((size_t)count * 8), *b = malloc((size_t)count * 8), *c = calloc((size_t)count, 8);
    double *times = malloc((size_t)rounds * sizeof *times), alpha = 1, beta = 0;
    if (info != 0 || !a || !b || !c || !times) {
        fprintf(stderr, "pdgemm: no memory or a bad descriptor\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    fill(a, count, 1u + (unsigned)rank);
    fill(b, count, 77u + (unsigned)rank);
    for (int i = -1; i < rounds; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double t = MPI_Wtime();
        pdgemm_("N", "N", &n, &n, &n, &alpha, a, &one, &one, desc, b, &one, &one, desc, &beta, c, &one, &one, desc);
        MPI_Barrier(MPI_COMM_WORLD);
        if (i >= 0) {
            times[i] = MPI_Wtime() - t;
        }
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    if (rank == 0) {
        printf("pdgemm n %d ranks %d grid %dx%d block %d: median %.4f s, %.1f GF/s\n", n, ranks, prow, pcol, nb,
               times[rounds / 2], 2.0 * n * n * n / times[rounds / 2] / 1e9);
    }
    free(a);
    free(b);
    free(c);
    free(times);
    Cblacs_gridexit(context);
    MPI_Finalize();
    return 0;
}
