/* Complex arrays: written and read, filled, converted between layouts and types, summed, saved and loaded. The
 * host's side is plain C on the two parts. */
#include "support/npyfile.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 12, COLS = 35, COUNT = ROWS * COLS };
static const int64_t shape[] = {ROWS, COLS};

static dm_layout some_layout(dmt_case *c)
{
    switch (dmt_int(&c->random, 0, 4)) {
    case 0:
        return dm_layout_rows(c->session);
    case 1:
        return dm_layout_cols(c->session);
    case 2:
        return dm_layout_cyclic(c->session, 1, 4);
    case 3:
        return dm_layout_replicated(c->session);
    default:
        return dm_layout_single(c->workers - 1);
    }
}

static dm_array make(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *extent)
{
    dm_array a;
    dm_layout layout = some_layout(c);
    DMT_OK(c, ndim == 2 ? dm_array_create(c->session, dtype, ndim, extent, &layout, &a)
                        : dm_array_create(c->session, dtype, ndim, extent, NULL, &a));
    return a;
}

/* Parts that are whole numbers, different everywhere. */
static dm_c128 number(int64_t i)
{
    return (dm_c128){(double)(i * 7 % 1001 - 500), (double)(i * 11 % 997 - 300)};
}

static void write_numbers(dmt_case *c, dm_dtype dtype, dm_array a)
{
    dm_c128 wide[COUNT];
    dm_c64 narrow[COUNT];
    for (int64_t i = 0; i < COUNT; i++) {
        wide[i] = number(i);
        narrow[i] = (dm_c64){(float)wide[i].re, (float)wide[i].im};
    }
    DMT_OK(c, dm_array_write(c->session, a, NULL, NULL, dtype == DM_C64 ? (void *)narrow : wide, 0));
}

static void read_numbers(dmt_case *c, dm_dtype dtype, dm_array a, int64_t count, dm_c128 *out)
{
    dm_c64 narrow[COUNT];
    DMT_OK(c, dm_array_read(c->session, a, NULL, NULL, dtype == DM_C64 ? (void *)narrow : out, 0));
    for (int64_t i = 0; i < count && dtype == DM_C64; i++) {
        out[i] = (dm_c128){(double)narrow[i].re, (double)narrow[i].im};
    }
}

static void check_number(dmt_case *c, const char *what, int64_t i, dm_c128 got, double re, double im)
{
    if (got.re != re || got.im != im) {
        dmt_fail(c, "%s: element %d is %g%+gi, not %g%+gi", what, (int)i, got.re, got.im, re, im);
    }
}

static void copies_case(dmt_case *c)
{
    dm_dtype from = c->number % 2 ? DM_C64 : DM_C128, to = c->number / 2 % 2 ? DM_C64 : DM_C128;
    dm_array a = make(c, from, 2, shape), b = make(c, to, 2, shape), x = make(c, DM_F32, 2, shape);
    dm_c128 got[COUNT];
    float real[COUNT];
    write_numbers(c, from, a);
    DMT_OK(c, dm_copy(c->session, a, b));
    DMT_OK(c, dm_copy(c->session, b, x));
    read_numbers(c, to, b, COUNT, got);
    DMT_OK(c, dm_array_read(c->session, x, NULL, NULL, real, 0));
    for (int64_t i = 0; i < COUNT; i++) {
        check_number(c, "copy", i, got[i], number(i).re, number(i).im);
        check_number(c, "real part", i, (dm_c128){(double)real[i], 0}, number(i).re, 0);
    }
    DMT_OK(c, dm_copy(c->session, x, a));
    read_numbers(c, from, a, COUNT, got);
    for (int64_t i = 0; i < COUNT; i++) {
        check_number(c, "from real", i, got[i], number(i).re, 0);
    }
    DMT_OK(c, dm_fill(c->session, b, -2.5));
    read_numbers(c, to, b, COUNT, got);
    for (int64_t i = 0; i < COUNT; i++) {
        check_number(c, "fill", i, got[i], -2.5, 0);
    }
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_uniform(c->session, b, 0, 1, 1));
    DMT_REFUSED(c, DM_ERR_DTYPE, dm_fill_normal(c->session, b, 0, 1, 1));
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, b));
    DMT_OK(c, dm_array_destroy(c->session, x));
}

static void sums_case(dmt_case *c)
{
    dm_dtype dtype = c->number % 2 ? DM_C64 : DM_C128;
    int dim = (int)(c->number / 2 % 2);
    bool spread = c->number / 4 % 2; /* one element of x a worker: pushed as they are */
    int64_t kept = shape[1 - dim], summed = shape[dim];
    dm_layout copies = dm_layout_replicated(c->session), rows = dm_layout_rows(c->session);
    dm_c128 got[COUNT], want[COLS] = {{0, 0}};
    dm_array a, out;
    if (spread) {
        DMT_OK(c, dm_array_create(c->session, dtype, 2, shape, &rows, &a));
        DMT_OK(c, dm_array_create(c->session, dtype, 1, &kept, &copies, &out));
    } else {
        a = make(c, dtype, 2, shape);
        out = make(c, dtype, 1, &kept);
    }
    write_numbers(c, dtype, a);
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t at = dim == 0 ? i % COLS : i / COLS;
        want[at].re += number(i).re;
        want[at].im += number(i).im;
    }
    dmt_say(c, "%d sums of %d over dim %d", (int)kept, (int)summed, dim);
    DMT_OK(c, dm_sum(c->session, a, &dim, 1, 1, 0, out));
    DMT_OK(c, dm_sum(c->session, a, &dim, 1, 2, -1, out));
    read_numbers(c, dtype, out, kept, got);
    for (int64_t i = 0; i < kept; i++) {
        check_number(c, "sum", i, got[i], want[i].re, want[i].im);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, out));
}

/* Also from a file of the other byte order: the two parts are swapped each by itself. */
static void file_case(dmt_case *c)
{
    dm_dtype dtype = c->number % 2 ? DM_C64 : DM_C128;
    int64_t part = dtype == DM_C64 ? 4 : 8, begin = 128, bytes = COUNT * 2 * part;
    dm_array a = make(c, dtype, 2, shape), b;
    dm_layout layout = some_layout(c);
    dm_c128 got[COUNT];
    char path[300], *file = malloc((size_t)(begin + bytes));
    assert_non_null(file);
    write_numbers(c, dtype, a);
    dmt_path(path, "complex.npy");
    DMT_OK(c, dm_array_save(c->session, a, path));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(file, 1, (size_t)(begin + bytes), f), begin + bytes);
    fclose(f);
    char *order = strchr(file + 10, '<');
    assert_true(order != NULL &&
                memcmp(order, dtype == DM_C64 ? "<c8'" : "<c16'", dtype == DM_C64 ? 4 : 5) == 0);
    for (int swapped = 0; swapped < 2; swapped++) {
        DMT_OK(c, dm_array_load(c->session, path, &layout, &b));
        read_numbers(c, dtype, b, COUNT, got);
        for (int64_t i = 0; i < COUNT; i++) {
            check_number(c, swapped ? "swapped" : "loaded", i, got[i], number(i).re, number(i).im);
        }
        DMT_OK(c, dm_array_destroy(c->session, b));
        *order = '>';
        for (int64_t i = 0; i < 2 * COUNT; i++) {
            for (int64_t k = 0; k < part / 2; k++) {
                char *one = file + begin + i * part + k, *other = file + begin + (i + 1) * part - 1 - k,
                     t = *one;
                *one = *other;
                *other = t;
            }
        }
        dmt_bytes_write(path, file, (size_t)(begin + bytes));
    }
    free(file);
    DMT_OK(c, dm_array_destroy(c->session, a));
}

/* c = op(a) op(b) + beta * c of small whole numbers: exact. Conjugates; real with complex. GPUs refuse. */
static dm_c128 small_number(int64_t i)
{
    return (dm_c128){(double)(i * 7 % 11 - 5), (double)(i * 5 % 13 - 6)};
}

static void product_case(dmt_case *c)
{
    enum { M = 9, N = 14, K = 20 };
    dm_dtype dtype = c->number % 2 ? DM_C64 : DM_C128;
    int trans[2] = {(int)dmt_int(&c->random, DM_N, DM_C), (int)dmt_int(&c->random, DM_N, DM_C)};
    bool real_b = dmt_chance(&c->random, 25);
    const int64_t outer[2] = {M, N};
    dm_array op[2], out = make(c, dtype, 2, (const int64_t[]){M, N}), wide, real;
    dm_c128 number[2][K * N], got[COUNT];
    double beta = (double)dmt_int(&c->random, 0, 2);
    for (int i = 0; i < 2; i++) {
        bool k_first = (i == 0) == (trans[i] != DM_N); /* a: m x k, b: k x n, or their transposes */
        const int64_t extent[2] = {k_first ? K : outer[i], k_first ? outer[i] : K};
        op[i] = make(c, dtype, 2, extent);
        wide = make(c, DM_C128, 2, extent);
        for (int64_t e = 0; e < K * outer[i]; e++) {
            number[i][e] = small_number(e + i);
            number[i][e].im = i == 1 && real_b ? 0 : number[i][e].im;
        }
        DMT_OK(c, dm_array_write(c->session, wide, NULL, NULL, number[i], 0));
        DMT_OK(c, dm_copy(c->session, wide, op[i]));
        if (i == 1 && real_b) {
            real = make(c, DM_F32, 2, extent);
            DMT_OK(c, dm_copy(c->session, wide, real));
            DMT_OK(c, dm_array_destroy(c->session, op[1]));
            op[1] = real;
        }
        DMT_OK(c, dm_array_destroy(c->session, wide));
    }
    dmt_say(c, "trans %d %d, beta %g", trans[0], trans[1], beta);
    DMT_OK(c, dm_fill(c->session, out, 3));
    DMT_OK(c, dm_gemm(c->session, trans[0], trans[1], 2, op[0], op[1], beta, out));
    read_numbers(c, dtype, out, M * N, got);
    for (int64_t e = 0; e < M * N; e++) {
        dm_c128 sum = {3 * beta, 0};
        for (int64_t k = 0; k < K; k++) {
            dm_c128 a = number[0][trans[0] ? k * M + e / N : e / N * K + k];
            dm_c128 b = number[1][trans[1] ? e % N * K + k : k * N + e % N];
            a.im = trans[0] == DM_C ? -a.im : a.im;
            b.im = trans[1] == DM_C ? -b.im : b.im;
            sum.re += 2 * (a.re * b.re - a.im * b.im);
            sum.im += 2 * (a.re * b.im + a.im * b.re);
        }
        check_number(c, "product", e, got[e], sum.re, sum.im);
    }
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_array_destroy(c->session, op[i]));
    }
    DMT_OK(c, dm_array_destroy(c->session, out));
}

static void test_products(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "complex_product", .cases = 150, .fn = product_case});
}

/* Sums and products of elements; of a complex array and a real one too. */
static void elements_case(dmt_case *c)
{
    dm_dtype dtype = c->number % 2 ? DM_C64 : DM_C128;
    dm_array a = make(c, dtype, 2, shape), b = make(c, c->number / 2 % 2 ? dtype : DM_F32, 2, shape);
    dm_array out = make(c, dtype, 2, shape);
    bool real = c->number / 2 % 2 == 0;
    dm_c128 got[COUNT];
    write_numbers(c, dtype, a);
    DMT_OK(c, dm_copy(c->session, a, b));
    DMT_OK(c, dm_add(c->session, 2, a, -3, b, out));
    read_numbers(c, dtype, out, COUNT, got);
    for (int64_t i = 0; i < COUNT; i++) {
        check_number(c, "add", i, got[i], -number(i).re, number(i).im * (real ? 2 : -1));
    }
    DMT_OK(c, dm_multiply(c->session, 1, a, b, out));
    read_numbers(c, dtype, out, COUNT, got);
    for (int64_t i = 0; i < COUNT; i++) {
        dm_c128 x = number(i), y = {x.re, real ? 0 : x.im};
        check_number(c, "multiply", i, got[i], x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, b));
    DMT_OK(c, dm_array_destroy(c->session, out));
}

static void test_elements(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "complex_elements", .cases = 40, .fn = elements_case});
}

static void test_copies(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "complex", .cases = 60, .fn = copies_case});
}

static void test_sums(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "complex_sum", .cases = 80, .fn = sums_case});
}

static void test_files(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "complex_file", .cases = 20, .fn = file_case});
}

/* The reductions that take complex numbers, over rows, against C's own complex numbers. */
static void check_reduction(dmt_case *c, const char *what, dm_array out, const double _Complex *want)
{
    dm_c128 got[ROWS];
    DMT_OK(c, dm_array_read(c->session, out, NULL, NULL, got, 0));
    for (int i = 0; i < ROWS; i++) {
        double off = hypot(got[i].re - creal(want[i]), got[i].im - cimag(want[i]));
        if (!(off <= 1e-5 * cabs(want[i]))) {
            dmt_fail(c, "%s of row %d is %.17g %+.17gi, not %.17g %+.17gi", what, i, got[i].re, got[i].im,
                     creal(want[i]), cimag(want[i]));
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, out));
}

static void reductions_case(dmt_case *c)
{
    dm_dtype dtype = dmt_chance(&c->random, 50) ? DM_C64 : DM_C128;
    const int64_t rows[] = {ROWS};
    const int dim = 1;
    double _Complex prod[ROWS], mean[ROWS], sums[3][ROWS], count[ROWS];
    dm_array x = make(c, dtype, 2, shape), out[6];
    write_numbers(c, dtype, x);
    for (int i = 0; i < ROWS; i++) {
        prod[i] = 1;
        mean[i] = sums[0][i] = sums[1][i] = sums[2][i] = count[i] = 0;
        for (int k = 0; k < COLS; k++) {
            dm_c128 v = number(i * COLS + k);
            double _Complex z = v.re + v.im * I;
            prod[i] *= z;
            mean[i] += z / COLS;
            count[i] += v.re != 0 || v.im != 0;
            sums[0][i] += cabs(z);
            sums[1][i] += v.re * v.re + v.im * v.im;
            sums[2][i] = fmax(creal(sums[2][i]), cabs(z));
        }
        sums[1][i] = sqrt(creal(sums[1][i]));
    }
    for (int i = 0; i < 6; i++) {
        out[i] = make(c, DM_C128, 1, rows);
    }
    DMT_OK(c, dm_prod(c->session, x, &dim, 1, out[0]));
    DMT_OK(c, dm_mean(c->session, x, &dim, 1, out[1]));
    DMT_OK(c, dm_count_nonzero(c->session, x, &dim, 1, out[2]));
    DMT_OK(c, dm_norm(c->session, x, 1, &dim, 1, out[3]));
    DMT_OK(c, dm_norm(c->session, x, 2, &dim, 1, out[4]));
    DMT_OK(c, dm_norm(c->session, x, (double)INFINITY, &dim, 1, out[5]));
    check_reduction(c, "the product", out[0], prod);
    check_reduction(c, "the mean", out[1], mean);
    check_reduction(c, "the count", out[2], count);
    check_reduction(c, "norm 1", out[3], sums[0]);
    check_reduction(c, "norm 2", out[4], sums[1]);
    check_reduction(c, "the largest norm", out[5], sums[2]);
    DMT_OK(c, dm_array_destroy(c->session, x));
}

static void test_reductions(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "complex_reductions", .cases = 60, .fn = reductions_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_sums),     cmocka_unit_test(test_files),
        cmocka_unit_test(test_products), cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_folder_remove);
}
