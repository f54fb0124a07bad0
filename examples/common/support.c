#include "common/support.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LAPACK's, in OpenBLAS: eigenvalues (ascending) and eigenvectors (columns of a column-major a). */
void dsyev_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,
            double *work, const int *lwork, int *info);

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("pca: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void *allocate(int64_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, bytes);
    if (!memory) {
        die("out of memory");
    }
    return memory;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

_Noreturn static void usage(void)
{
    fputs("usage: pca [file.npy] [-k components] [-o outdir]\n"
          "       pca --rows M --cols N [--rank R] [--save-data] [-k components] [-o outdir]\n",
          stderr);
    exit(2);
}

static int64_t parse_count(const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 1) {
        fprintf(stderr, "pca: '%s' is not a positive whole number\n", text);
        usage();
    }
    return value;
}

options parse_options(int argc, char **argv)
{
    enum { ROWS = 256, COLS, RANK, SAVE_DATA };
    static const struct option names[] = {{"rows", required_argument, NULL, ROWS},
                                          {"cols", required_argument, NULL, COLS},
                                          {"rank", required_argument, NULL, RANK},
                                          {"save-data", no_argument, NULL, SAVE_DATA},
                                          {NULL, 0, NULL, 0}};
    options o = {.file = NULL, .outdir = "pca-out", .k = 10};
    for (int c; (c = getopt_long(argc, argv, "k:o:", names, NULL)) != -1;) {
        switch (c) {
        case ROWS:
            o.rows = parse_count(optarg);
            break;
        case COLS:
            o.cols = parse_count(optarg);
            break;
        case RANK:
            o.rank = parse_count(optarg);
            break;
        case SAVE_DATA:
            o.save_data = true;
            break;
        case 'k':
            o.k = parse_count(optarg);
            break;
        case 'o':
            o.outdir = optarg;
            break;
        default:
            usage();
        }
    }
    bool generated = o.rows || o.cols || o.rank;
    if (argc - optind > (generated ? 0 : 1) || (generated && !(o.rows && o.cols))) {
        usage();
    }
    if (generated && !o.rank) {
        o.rank = o.cols < 5 ? o.cols : 5;
    } else if (!generated) {
        o.file = optind < argc ? argv[optind] : "examples/data/digits.npy";
        size_t length = strlen(o.file);
        int stem = (int)(length > 4 && !strcmp(o.file + length - 4, ".npy") ? length - 4 : length);
        snprintf(o.labels, sizeof o.labels, "%.*s_labels.npy", stem, o.file);
    }
    if (mkdir(o.outdir, 0777) != 0 && errno != EEXIST) {
        die("%s: %s", o.outdir, strerror(errno));
    }
    return o;
}

const char *in_folder(const options *o, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", o->outdir, name);
    return path;
}

/* Row i becomes row n - 1 - i, each with the sign that makes its largest entry positive. */
static void order_rows(int n, double *a)
{
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        for (int c = 0; c < n; c++) {
            double kept = a[(size_t)i * n + c];
            a[(size_t)i * n + c] = a[(size_t)j * n + c];
            a[(size_t)j * n + c] = kept;
        }
    }
    for (int i = 0; i < n; i++) {
        double *row = a + (size_t)i * n;
        int largest = 0;
        for (int c = 1; c < n; c++) {
            largest = fabs(row[c]) > fabs(row[largest]) ? c : largest;
        }
        double sign = row[largest] < 0 ? -1 : 1;
        for (int c = 0; c < n; c++) {
            row[c] *= sign;
        }
    }
}

void symmetric_eigen(int n, double *a, double *values)
{
    int info = 0, lwork = -1;
    double best = 0;
    dsyev_("V", "L", &n, a, &n, values, &best, &lwork, &info);
    lwork = (int)best;
    double *work = allocate(lwork, sizeof *work);
    dsyev_("V", "L", &n, a, &n, values, work, &lwork, &info);
    free(work);
    if (info != 0) {
        die("LAPACK's dsyev failed with info %d (does the data hold NaN or Inf?)", info);
    }
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        double kept = values[i];
        values[i] = values[j];
        values[j] = kept;
    }
    order_rows(n, a);
}

void print_variance(const double *values, int64_t n, int64_t k)
{
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        total += values[i];
    }
    printf("component   explained variance    share   cumulative\n");
    for (int64_t i = 0; i < k; i++) {
        sum += values[i];
        printf("%9lld   %18.6f  %6.2f %%     %6.2f %%\n", (long long)i + 1, values[i],
               total > 0 ? 100 * values[i] / total : 0, total > 0 ? 100 * sum / total : 0);
    }
}
