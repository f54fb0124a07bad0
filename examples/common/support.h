/* What examples need beside dmath: options, memory, LAPACK, output. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct options {
    const char *file; /* NULL: generated data */
    const char *outdir;
    char labels[1024]; /* for digits.npy: digits_labels.npy; "" for generated data */
    int64_t rows, cols, rank, k;
    bool save_data;
} options;

/* Prints "pca: ..." and ends the program with status 1. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Zeroed; ends the program when there is no memory. */
void *allocate(int64_t count, size_t bytes);
bool file_exists(const char *path);

/* Makes outdir where it is missing. Ends the program with status 2 on arguments it does not understand. */
options parse_options(int argc, char **argv);
/* outdir/name; valid until the next call. */
const char *in_folder(const options *o, const char *name);

/* a: n x n, symmetric, becomes the eigenvectors, one a row; values: n, descending. The largest entry of each
 * vector is positive, so that the result does not depend on chance. */
void symmetric_eigen(int n, double *a, double *values);
/* Explained variance of the first k of n components: value, share, cumulative share. */
void print_variance(const double *values, int64_t n, int64_t k);

#endif
