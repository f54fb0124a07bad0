/* The kernels of emulated GPUs: what they do is what the CPU's do, when the stream gets there, with descriptors
 * as they were at the call and tables of runs as they are then. */
#include "device/runtime.h"
#include "kernels/cuda/cuda.h"
#include "kernels/direct.h"
#include "map_cases.h"

static void ok(dm_status status)
{
    if (status != DM_OK) {
        fail_msg("%s: %s", dmi_status_name(status), dmi_error_text());
    }
}

/* A queue whose stream stands still until its gate is opened. */
typedef struct fixture {
    dmi_queue *q, *other;
    uint32_t *gate, opened;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    ok(dmi_cuda_queue_create(0, &f->q));
    ok(dmi_cuda_queue_create(1, &f->other));
    ok(dmi_cu_use(0));
    assert_true(dmi_cuda_queue_libraries(f->q));
    f->gate = dmi_cu_malloc(sizeof *f->gate);
    assert_non_null(f->gate);
    ok(dmi_cu_zero(f->gate, sizeof *f->gate));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    dmi_cuda_queue_destroy(f->q);
    dmi_cuda_queue_destroy(f->other);
    dmi_cu_release(f->gate);
    free(f);
    return 0;
}

static void shut(fixture *f)
{
    ok(dmi_cu_wait_value(f->q->stream, f->gate, f->opened + 1));
}

static void finish(fixture *f)
{
    f->opened++;
    ok(dmi_cu_copy(f->other->stream, f->gate, &f->opened, sizeof f->opened));
    ok(dmi_cu_stream_wait(f->q->stream));
    if (f->q->error != 0) {
        fail_msg("the queue failed: %s", f->q->error_text);
    }
}

static void *upload(fixture *f, const void *host, int64_t bytes)
{
    void *p = dmi_cu_malloc(bytes + 1);
    assert_non_null(p);
    ok(dmi_cu_copy(f->other->stream, p, host, bytes));
    ok(dmi_cu_stream_wait(f->other->stream));
    return p;
}

/* The device's n elements of type t are those expected; both are given up. */
static void check(fixture *f, const char *what, dm_dtype t, void *device, void *expected, int64_t n)
{
    char *got = malloc((size_t)(n * width_of(t)) + 1);
    assert_non_null(got);
    ok(dmi_cu_copy(f->other->stream, got, device, n * width_of(t)));
    check_parts(what, t, got, expected, n);
    free(got);
    free(expected);
    dmi_cu_release(device);
}

static dm_dtype any_type(rng *r)
{
    return all_dtypes[rng_in(r, 0, ALL_DTYPES - 1)];
}

/* --- copies ----------------------------------------------------------------------------------- */
/* Tables of runs that are on the device only when the stream is past the gate; the host's are lost before. */
typedef struct tables {
    const dmi_run *run[DM_MAX_DIMS];
} tables;

static void put_tables(fixture *f, const dmi_copy *d, int kind, tables *t)
{
    memset(t, 0, sizeof *t);
    for (int k = 0; k < d->ndim; k++) {
        if (d->nrun[k] > 1 && (kind == 2 || k % 2 == 0)) {
            int64_t bytes = d->nrun[k] * (int64_t)sizeof(dmi_run);
            void *p = dmi_cu_malloc(bytes);
            assert_non_null(p);
            ok(dmi_cu_copy(f->q->stream, p, d->run[k], bytes));
            t->run[k] = p;
        }
    }
}

static void lose_runs(fixture *f, geometry *g)
{
    f->q->device_run = NULL;
    for (int k = 0; k < g->d.ndim; k++) {
        memset(g->runs[k], 0x7f, (size_t)g->d.nrun[k] * sizeof(dmi_run));
    }
    memset(g->d.src_stride, 0x7f, sizeof g->d.src_stride);
}

static void free_tables(tables *t)
{
    for (int k = 0; k < DM_MAX_DIMS; k++) {
        dmi_cu_release((void *)(uintptr_t)t->run[k]);
    }
}

static void test_copies(void **state)
{
    fixture *f = *state;
    rng r = {1};
    for (int round = 0; round < 150; round++) {
        geometry g;
        tables t;
        make_geometry(&r, (int)rng_in(&r, 0, 4), 5, &g);
        g.d.src_dtype = any_type(&r);
        g.d.dst_dtype = any_type(&r);
        int64_t src_bytes = g.src_span * width_of(g.d.src_dtype),
                dst_bytes = g.dst_span * width_of(g.d.dst_dtype);
        char *src = random_array(&r, g.d.src_dtype, g.src_span),
             *dst = random_array(&r, g.d.dst_dtype, g.dst_span);
        void *gpu_src = upload(f, src, src_bytes), *gpu_dst = upload(f, dst, dst_bytes);
        dmi_run_copy(dmi_backend_cpu(), NULL, &g.d, src, dst);
        shut(f);
        put_tables(f, &g.d, round % 3, &t);
        f->q->device_run = round % 3 == 0 ? NULL : t.run;
        dmi_run_copy(dmi_backend_cuda(), f->q, &g.d, gpu_src, gpu_dst);
        lose_runs(f, &g);
        finish(f);
        check(f, "copy", g.d.dst_dtype, gpu_dst, dst, g.dst_span);
        free_tables(&t);
        dmi_cu_release(gpu_src);
        free(src);
        free_geometry(&g);
    }
}

/* Where a dim's runs are on the device, they are looked up there. */
static void test_runs_of_device(void **state)
{
    fixture *f = *state;
    dmi_run host[2] = {{.a = 0, .b = 0, .len = 2}, {.a = 2, .b = 2, .len = 2}}, other[2] = {host[0], host[1]};
    tables t = {0};
    dmi_copy d = {.ndim = 1,
                  .src_dtype = DM_I32,
                  .dst_dtype = DM_I32,
                  .nrun = {2},
                  .run = {host},
                  .src_stride = {1},
                  .dst_stride = {1},
                  .count = 4};
    const int32_t src[4] = {1, 2, 3, 4};
    int32_t *expected = malloc(sizeof src);
    assert_non_null(expected);
    memcpy(expected, (int32_t[]){3, 4, 1, 2}, sizeof src);
    other[0].a = 2;
    other[1].a = 0;
    t.run[0] = upload(f, other, sizeof other);
    void *gpu_src = upload(f, src, sizeof src), *gpu_dst = upload(f, src, sizeof src);
    shut(f);
    f->q->device_run = t.run;
    dmi_run_copy(dmi_backend_cuda(), f->q, &d, gpu_src, gpu_dst);
    f->q->device_run = NULL;
    finish(f);
    check(f, "copy", DM_I32, gpu_dst, expected, 4);
    free_tables(&t);
    dmi_cu_release(gpu_src);
}

static void test_acc_adds(void **state)
{
    fixture *f = *state;
    rng r = {2};
    for (int round = 0; round < 100; round++) {
        geometry g;
        tables t;
        make_geometry(&r, (int)rng_in(&r, 0, 4), 5, &g);
        int acc = (int)rng_in(&r, 0, 2);
        int64_t words = dmi_acc_bytes(acc) / 8;
        dm_dtype type = dmi_acc_whole(acc) ? DM_I64 : DM_F64;
        char *part = random_array(&r, type, g.src_span * words),
             *sum = random_array(&r, type, g.dst_span * words);
        void *gpu_part = upload(f, part, g.src_span * words * 8),
             *gpu_sum = upload(f, sum, g.dst_span * words * 8);
        dmi_acc_add d = {.acc = acc, .geometry = g.d};
        dmi_run_acc_add(dmi_backend_cpu(), NULL, &d, part, sum);
        shut(f);
        put_tables(f, &g.d, round % 3, &t);
        f->q->device_run = round % 3 == 0 ? NULL : t.run;
        dmi_run_acc_add(dmi_backend_cuda(), f->q, &d, gpu_part, gpu_sum);
        lose_runs(f, &g);
        memset(&d, 0, sizeof d);
        finish(f);
        check(f, "acc_add", type, gpu_sum, sum, g.dst_span * words);
        free_tables(&t);
        dmi_cu_release(gpu_part);
        free(part);
        free_geometry(&g);
    }
}

/* --- boxes ------------------------------------------------------------------------------------ */
static int random_extents(rng *r, int64_t *extent)
{
    int ndim = (int)rng_in(r, 0, 4);
    for (int k = 0; k < ndim; k++) {
        extent[k] = rng_in(r, 0, 20) == 0 ? 0 : rng_in(r, 1, 7);
    }
    return ndim;
}

static void test_map(void **state)
{
    fixture *f = *state;
    rng r = {3};
    for (int round = 0; round < 150; round++) {
        map_case c;
        void *at[DMI_MAP_INPUTS + 1], *gpu[DMI_MAP_INPUTS + 1];
        map_case_random(&r, &c, (int)rng_in(&r, 1, 3), true);
        map_box(&r, &c, (int)rng_in(&r, 0, 4), 7, false);
        int out = c.d.program.inputs;
        for (int s = 0; s <= out; s++) {
            at[s] = random_array(&r, c.d.dtype[s], c.span[s]);
            gpu[s] = upload(f, at[s], c.span[s] * width_of(c.d.dtype[s]));
        }
        dmi_run_map(dmi_backend_cpu(), NULL, &c.d, c.m.number, c.m.numbers, at);
        shut(f);
        dmi_run_map(dmi_backend_cuda(), f->q, &c.d, c.m.number, c.m.numbers, gpu);
        dm_dtype type = c.d.dtype[out];
        memset(&c.d, 0, sizeof c.d);
        memset(c.m.number, 0, sizeof c.m.number);
        finish(f);
        check(f, "map", type, gpu[out], at[out], c.span[out]);
        for (int s = 0; s < out; s++) {
            dmi_cu_release(gpu[s]);
            free(at[s]);
        }
    }
}

static void test_fills(void **state)
{
    fixture *f = *state;
    rng r = {4};
    for (int round = 0; round < 100; round++) {
        int64_t shape[DM_MAX_DIMS];
        int kind = (int)rng_in(&r, 0, DMI_FILL_KINDS - 1), ndim = random_extents(&r, shape);
        dm_dtype t = kind == DMI_FILL_NORMAL ? all_dtypes[rng_in(&r, 0, 3)] : any_type(&r);
        dmi_fill_values v = {.p0 = -3, .p1 = 4, .i0 = -3, .i1 = 4, .seed = rng_next(&r)};
        dmi_fill d;
        if (kind == DMI_FILL_IDENTITY) {
            ndim = 2;
            shape[0] = rng_in(&r, 1, 9);
            shape[1] = rng_in(&r, 1, 9);
        }
        whole_fill(kind, t, ndim, shape, &d);
        int64_t n = d.region.count;
        void *out = random_array(&r, t, n), *gpu = upload(f, out, n * width_of(t));
        dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, out);
        shut(f);
        dmi_run_fill(dmi_backend_cuda(), f->q, &d, &v, gpu);
        memset(&d, 0, sizeof d);
        memset(&v, 0, sizeof v);
        finish(f);
        check(f, "fill", t, gpu, out, n);
    }
}

/* A sum over some dims, and its result into an array of any type. */
static void test_sums(void **state)
{
    fixture *f = *state;
    rng r = {5};
    for (int round = 0; round < 100; round++) {
        dmi_fold d;
        int64_t span[3];
        dm_dtype type = any_type(&r), out_type = any_type(&r);
        random_fold(&r, type, out_type, &d, span);
        double scale = (double)rng_in(&r, -2, 2), beta = (double)rng_in(&r, 0, 2);
        void *rows = random_array(&r, type, span[0]), *gpu_rows = upload(f, rows, span[0] * width_of(type));
        void *own = random_array(&r, type, span[2]), *gpu_own = upload(f, own, span[2] * width_of(type));
        void *out = random_array(&r, out_type, span[1]),
             *gpu_out = upload(f, out, span[1] * width_of(out_type));
        dmi_run_fold(dmi_backend_cpu(), NULL, &d, scale, rows, d.own >= 0 ? own : NULL, beta, out);
        shut(f);
        dmi_run_fold(dmi_backend_cuda(), f->q, &d, scale, gpu_rows, d.own >= 0 ? gpu_own : NULL, beta, gpu_out);
        memset(&d, 0, sizeof d);
        finish(f);
        check(f, "fold", out_type, gpu_out, out, span[1]);
        dmi_cu_release(gpu_rows);
        dmi_cu_release(gpu_own);
        free(rows);
        free(own);
    }
    for (int round = 0; round < 100; round++) {
        dmi_reduce d = {.dtype = any_type(&r), .reduced = (unsigned)rng_in(&r, 0, 15)};
        dmi_acc_store s = {.out_dtype = any_type(&r), .acc = dmi_acc_of(d.dtype)};
        d.ndim = random_extents(&r, d.extent);
        int64_t n = random_strides(&r, d.ndim, d.extent, d.stride), kept = 1;
        for (int k = 0; k < d.ndim; k++) {
            if ((d.reduced >> k & 1) == 0) {
                s.extent[s.ndim++] = d.extent[k];
                kept *= d.extent[k];
            }
        }
        int64_t n_out = random_strides(&r, s.ndim, s.extent, s.out_stride), words = dmi_acc_bytes(s.acc) / 8;
        dm_dtype type = dmi_acc_whole(s.acc) ? DM_I64 : DM_F64, out_type = s.out_dtype;
        double scale = (double)rng_in(&r, -2, 2), beta = (double)rng_in(&r, 0, 2);
        void *in = random_array(&r, d.dtype, n), *acc = random_array(&r, type, kept * words);
        void *out = random_array(&r, s.out_dtype, n_out), *gpu_in = upload(f, in, n * width_of(d.dtype));
        void *gpu_acc = upload(f, acc, kept * words * 8),
             *gpu_out = upload(f, out, n_out * width_of(s.out_dtype));
        dmi_run_reduce(dmi_backend_cpu(), NULL, &d, in, acc);
        dmi_run_acc_store(dmi_backend_cpu(), NULL, &s, scale, acc, beta, out);
        shut(f);
        dmi_run_reduce(dmi_backend_cuda(), f->q, &d, gpu_in, gpu_acc);
        dmi_run_acc_store(dmi_backend_cuda(), f->q, &s, scale, gpu_acc, beta, gpu_out);
        memset(&d, 0, sizeof d);
        memset(&s, 0, sizeof s);
        finish(f);
        check(f, "reduce", type, gpu_acc, acc, kept * words);
        check(f, "acc_store", out_type, gpu_out, out, n_out);
        dmi_cu_release(gpu_in);
        free(in);
    }
}

/* --- products ------------------------------------------------------------------------------------ */
static real element(dm_dtype t, const char *p, int64_t at)
{
    return decode(t, p + at * width_of(t));
}

/* In place; the sums are small whole numbers, so that only the result is rounded. */
static void naive_product(const dmi_gemm *d, dm_dtype c_type, double alpha, const char *a, const char *b,
                          double beta, char *c)
{
    dm_dtype b_type = d->b_dtype ? d->b_dtype : d->dtype;
    for (int64_t i = 0; i < d->m; i++) {
        for (int64_t j = 0; j < d->n; j++) {
            char *at = c + (d->c_offset + i * d->ldc + j) * width_of(c_type);
            real sum = 0;
            for (int64_t k = 0; k < d->k; k++) {
                sum += element(d->dtype, a, d->a_offset + (d->trans_a ? k * d->lda + i : i * d->lda + k)) *
                       element(b_type, b, d->b_offset + (d->trans_b ? j * d->ldb + k : k * d->ldb + j));
            }
            sum = alpha * sum + (beta == 0 ? 0 : beta * decode(c_type, at));
            encode_float(c_type, sum == 0 ? 0 : sum, at);
        }
    }
}

static char *small_array(rng *r, dm_dtype t, int64_t n)
{
    char *p = malloc((size_t)(n * width_of(t)) + 1);
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        small_element(r, t, p + i * width_of(t));
    }
    return p;
}

static void test_products(void **state)
{
    fixture *f = *state;
    rng r = {6};
    for (int round = 0; round < 120; round++) {
        static const double betas[] = {0, 1, -2, 0.5};
        static const dm_dtype types[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_F8E4M3, DM_F8E5M2};
        dmi_gemm d = {.dtype = types[round % 6], .m = rng_in(&r, 0, 9), .n = rng_in(&r, 0, 9)};
        bool f8 = dmi_gemm_is_f8(&d);
        d.b_dtype = f8 && rng_in(&r, 0, 1) ? types[rng_in(&r, 4, 5)] : (dm_dtype)0;
        dm_dtype b_type = d.b_dtype ? d.b_dtype : d.dtype;
        d.k = rng_in(&r, 0, 40);
        d.trans_a = (int)rng_in(&r, 0, 1);
        d.trans_b = (int)rng_in(&r, 0, 1);
        d.lda = (d.trans_a ? d.m : d.k) + rng_in(&r, 1, 3);
        d.ldb = (d.trans_b ? d.k : d.n) + rng_in(&r, 1, 3);
        d.ldc = d.n + rng_in(&r, 1, 3);
        d.a_offset = rng_in(&r, 0, 2);
        d.b_offset = rng_in(&r, 0, 2);
        d.c_offset = rng_in(&r, 0, 2);
        d.c_dtype = f8                                           ? types[rng_in(&r, 1, 3)]
                    : width_of(d.dtype) == 2 && rng_in(&r, 0, 1) ? DM_F32
                    : rng_in(&r, 0, 1)                           ? d.dtype
                                                                 : (dm_dtype)0;
        dm_dtype c_type = d.c_dtype == 0 ? d.dtype : d.c_dtype;
        double alpha = (double)rng_in(&r, 1, 3), beta = betas[rng_in(&r, 0, 3)];
        int64_t n[3] = {d.a_offset + (d.trans_a ? d.k : d.m) * d.lda,
                        d.b_offset + (d.trans_b ? d.n : d.k) * d.ldb, d.c_offset + d.m * d.ldc};
        char *a = small_array(&r, d.dtype, n[0]), *b = small_array(&r, b_type, n[1]);
        char *c = small_array(&r, c_type, n[2]);
        if (beta == 0 && d.m > 0 && d.n > 0) { /* not read */
            encode_float(c_type, NAN, c + d.c_offset * width_of(c_type));
        }
        void *gpu_a = upload(f, a, n[0] * width_of(d.dtype)), *gpu_b = upload(f, b, n[1] * width_of(b_type));
        void *gpu_c = upload(f, c, n[2] * width_of(c_type));
        naive_product(&d, c_type, alpha, a, b, beta, c);
        shut(f);
        dmi_device_facts facts = {.gpu = true, .emulated = true};
        void *workspace = dmi_cu_malloc(dmi_kernel_workspace(DMI_KERNEL_gemm, &d, &facts) + 1);
        assert_non_null(workspace);
        dmi_run_gemm(dmi_backend_cuda(), f->q, &d, alpha, gpu_a, gpu_b, beta, gpu_c, workspace);
        memset(&d, 0, sizeof d);
        finish(f);
        for (int64_t i = 0; i < n[2]; i++) { /* a zero may have either sign */
            char *e = (char *)gpu_c + i * width_of(c_type);
            if (decode(c_type, e) == 0) {
                memcpy(e, c + i * width_of(c_type),
                       decode(c_type, c + i * width_of(c_type)) == 0 ? (size_t)width_of(c_type) : 0);
            }
        }
        check(f, "gemm", c_type, gpu_c, c, n[2]);
        dmi_cu_release(workspace);
        dmi_cu_release(gpu_a);
        dmi_cu_release(gpu_b);
        free(a);
        free(b);
    }
}

/* --- what a GPU would not do --------------------------------------------------------------------- */
static void test_errors(void **state)
{
    (void)state;
    dmi_queue *q = NULL;
    char host[8];
    dmi_fill_values v = {0};
    dmi_fill d;
    int64_t shape = 8;
    whole_fill(DMI_FILL_CONST, DM_U8, 1, &shape, &d);
    ok(dmi_cuda_queue_create(1, &q));
    memset(host, 1, sizeof host);
    assert_string_equal(dmi_backend_cuda()->name, "emulated");
    dmi_run_fill(dmi_backend_cuda(), q, &d, &v, host);
    assert_int_not_equal(q->error, 0);
    assert_non_null(strstr(q->error_text, "fill: "));
    char *device = dmi_cu_malloc(8);
    assert_non_null(device);
    dmi_run_fill(dmi_backend_cuda(), q, &d, &v, device); /* nothing after an error */
    ok(dmi_cu_stream_wait(q->stream));
    assert_int_equal(host[0], 1);
    assert_int_not_equal(device[0], 0);
    dmi_cu_release(device);
    dmi_cuda_queue_destroy(q);
    ok(dmi_cu_use(0));
}

int main(void)
{
#ifdef DMATH_WITH_CUDA
    puts("this build has CUDA in place of emulated GPUs");
    return 0;
#endif
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_runs_of_device), cmocka_unit_test(test_acc_adds),
        cmocka_unit_test(test_map),    cmocka_unit_test(test_fills),          cmocka_unit_test(test_sums),
        cmocka_unit_test(test_products), cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
