/* Products on the GPU: exact on small whole numbers, all transposes and types; and every kernel in a graph. */
#include "cuda/cuda_case.h"
#include "kernels/direct.h"

typedef struct product {
    dmi_gemm d;
    dm_dtype c_type;
    int64_t a_span, b_span, c_span;
    double alpha, beta;
} product;

static dm_dtype b_type(const dmi_gemm *d)
{
    return d->b_dtype ? d->b_dtype : d->dtype;
}

typedef struct number {
    real re, im;
} number;

static number element(dm_dtype t, const char *p, int64_t at, bool conjugate)
{
    dm_dtype part = part_of(t);
    p += at * width_of(t);
    real im = is_complex(t) ? decode(part, p + width_of(part)) : 0;
    return (number){decode(part, p), conjugate ? -im : im};
}

static void store(dm_dtype t, number z, char *at)
{
    dm_dtype part = part_of(t);
    encode_float(part, z.re, at);
    if (is_complex(t)) {
        encode_float(part, z.im, at + width_of(part));
    }
}

/* Expected c, in place. The sums are small whole numbers: what is rounded is the result alone. */
static void naive_one(const product *p, const dmi_gemm *d, const char *a, const char *b, char *c)
{
    double alpha = d->k == 0 ? 0 : p->alpha;
    for (int64_t i = 0; i < d->m; i++) {
        for (int64_t j = 0; j < d->n; j++) {
            number sum = {0, 0};
            int64_t at = d->c_offset + i * d->ldc + j;
            for (int64_t k = 0; k < d->k; k++) {
                number x = element(d->dtype, a, d->a_offset + (d->trans_a ? k * d->lda + i : i * d->lda + k),
                                   d->conj_a);
                number y = element(b_type(d), b, d->b_offset + (d->trans_b ? j * d->ldb + k : k * d->ldb + j),
                                   d->conj_b);
                sum.re += x.re * y.re - x.im * y.im;
                sum.im += x.re * y.im + x.im * y.re;
            }
            number was = element(p->c_type, c, at, false);
            sum.re = alpha * sum.re + (p->beta == 0 ? 0 : p->beta * was.re);
            sum.im = alpha * sum.im + (p->beta == 0 ? 0 : p->beta * was.im);
            store(p->c_type, sum, c + at * width_of(p->c_type));
        }
    }
}

static void naive(const product *p, const char *a, const char *b, char *c)
{
    for (int64_t s = 0; s < DMI_MAX(p->d.count, 1); s++) {
        dmi_gemm one = p->d;
        one.a_offset += s * one.a_step;
        one.b_offset += s * one.b_step;
        one.c_offset += s * one.c_step;
        naive_one(p, &one, a, b, c);
    }
}

static char *small_array(rng *r, dm_dtype t, int64_t n)
{
    char *p = malloc((size_t)(n * width_of(t)) + 1);
    assert_non_null(p);
    for (int64_t i = 0; i < n * parts_in(t); i++) {
        small_element(r, part_of(t), p + i * width_of(part_of(t)));
    }
    return p;
}

static void check_product(fixture *f, rng *r, const product *p)
{
    dm_dtype t = p->d.dtype, tb = b_type(&p->d), part = part_of(p->c_type);
    char *a = small_array(r, t, p->a_span), *b = small_array(r, tb, p->b_span);
    char *c = small_array(r, p->c_type, p->c_span);
    if (p->beta == 0 && p->d.m > 0 && p->d.n > 0) { /* not read */
        store(p->c_type, (number){NAN, NAN}, c + p->d.c_offset * width_of(p->c_type));
    }
    void *gpu_a = upload(a, p->a_span * width_of(t)), *gpu_b = upload(b, p->b_span * width_of(tb));
    void *gpu_c = upload(c, p->c_span * width_of(p->c_type)), *workspace = NULL;
    dmi_device_facts facts = {.gpu = true};
    CUDA(cudaMalloc(&workspace, (size_t)dmi_kernel_workspace(DMI_KERNEL_gemm, &p->d, &facts) + 1));
    dmi_run_gemm(dmi_backend_cuda(), f->q, &p->d, p->alpha, gpu_a, gpu_b, p->beta, gpu_c, workspace);
    naive(p, a, b, c);
    finish(f);
    char *got = download(gpu_c, p->c_span * width_of(p->c_type));
    /* The library rounds products of 8-bit floats to a 16-bit c's type before it adds beta c. */
    bool twice = dmi_gemm_is_f8(&p->d) && p->c_type != DM_F32 && p->beta != 0;
    for (int64_t i = 0; i < p->c_span * parts_in(p->c_type); i++) { /* zeros of either sign are alike */
        char *g = got + i * width_of(part), *e = c + i * width_of(part);
        real x = decode(part, g), y = decode(part, e), unit = ldexpl(fabsl(y), part == DM_BF16 ? -7 : -10);
        if ((x == 0 && y == 0) || (twice && fabsl(x - y) <= unit)) {
            memcpy(g, e, (size_t)width_of(part));
        }
    }
    char what[96];
    snprintf(what, sizeof what, "gemm of %s and %s, %lld x %lld x %lld, alpha %g, beta %g", dmi_dtype_name(t),
             dmi_dtype_name(tb), (long long)p->d.m, (long long)p->d.n, (long long)p->d.k, p->alpha, p->beta);
    check_parts(what, p->c_type, got, c, p->c_span);
    CUDA(cudaFree(gpu_a));
    CUDA(cudaFree(gpu_b));
    CUDA(cudaFree(gpu_c));
    CUDA(cudaFree(workspace));
    free(a);
    free(b);
    free(c);
    free(got);
}

static void test_products(void **state)
{
    fixture *f = begin_test(state);
    rng r = {41};
    for (int64_t round = 0; round < rounds(f, 400); round++) {
        static const double alphas[] = {1, -1, 2, 0.5}, betas[] = {0, 1, -2, 0};
        product p = {.alpha = alphas[rng_in(&r, 0, 3)], .beta = betas[rng_in(&r, 0, 3)]};
        dmi_gemm *d = &p.d;
        int64_t longest = round % 8 == 0 ? 300 : 40;
        static const dm_dtype types[] = {DM_F64, DM_F32,  DM_F16,    DM_BF16,
                                         DM_C64, DM_C128, DM_F8E4M3, DM_F8E5M2};
        d->dtype = types[rng_in(&r, 0, 7)];
        p.c_type = d->dtype;
        if (width_of(d->dtype) == 2 && rng_in(&r, 0, 1) == 1) {
            p.c_type = d->c_dtype = DM_F32;
        }
        if (dmi_gemm_is_f8(d)) {
            p.c_type = d->c_dtype = types[rng_in(&r, 1, 3)];
            d->b_dtype = rng_in(&r, 0, 1) ? types[rng_in(&r, 6, 7)] : (dm_dtype)0;
        }
        d->trans_a = (int)rng_in(&r, 0, 1);
        d->trans_b = (int)rng_in(&r, 0, 1);
        d->conj_a = is_complex(d->dtype) && d->trans_a && rng_in(&r, 0, 1);
        d->conj_b = is_complex(d->dtype) && d->trans_b && rng_in(&r, 0, 1);
        d->m = rng_in(&r, 0, longest);
        d->n = rng_in(&r, 0, longest);
        d->k = rng_in(&r, 0, longest);
        if (round % 3 == 0) { /* a column or a row */
            *(rng_in(&r, 0, 1) ? &d->m : &d->n) = 1;
        }
        d->lda = DMI_MAX((d->trans_a ? d->m : d->k) + rng_in(&r, 0, 5), 1);
        d->ldb = DMI_MAX((d->trans_b ? d->k : d->n) + rng_in(&r, 0, 5), 1);
        d->ldc = DMI_MAX(d->n + rng_in(&r, 0, 5), 1);
        d->a_offset = rng_in(&r, 0, 3);
        d->b_offset = rng_in(&r, 0, 3);
        d->c_offset = rng_in(&r, 0, 3);
        p.a_span = d->a_offset + (d->trans_a ? d->k : d->m) * d->lda;
        p.b_span = d->b_offset + (d->trans_b ? d->n : d->k) * d->ldb;
        p.c_span = d->c_offset + d->m * d->ldc;
        d->tf32 = rng_in(&r, 0, 3) == 0;          /* whose 10 bits hold these numbers */
        if (dmi_gemm_is_f8(d) && round % 4 < 2) { /* as cublasLt takes it, packed or not */
            d->n = (d->n + 15) / 16 * 16;
            d->ldb = DMI_MAX(d->trans_b ? d->ldb : d->n, 1);
            d->ldc = DMI_MAX(d->n, 1);
            d->c_offset = 0;
            d->k = round % 4 == 0 ? (d->k + 15) / 16 * 16 : d->k;
            d->lda = d->trans_a ? d->lda : DMI_MAX(round % 4 == 0 ? d->k : d->k + 3, 1);
            d->ldb = d->trans_b ? DMI_MAX(round % 4 == 0 ? d->k : d->k + 3, 1) : d->ldb;
            d->a_offset = d->b_offset = 0;
            p.a_span = d->a_offset + (d->trans_a ? d->k : d->m) * d->lda;
            p.b_span = d->b_offset + (d->trans_b ? d->n : d->k) * d->ldb;
            p.c_span = d->m * d->ldc;
        }
        if (round % 5 == 0) { /* a stack */
            d->count = rng_in(&r, 1, 5);
            d->a_step = rng_in(&r, 0, 2) ? p.a_span + rng_in(&r, 0, 3) : 0; /* 0: the same matrix for all */
            d->b_step = rng_in(&r, 0, 2) ? p.b_span + rng_in(&r, 0, 3) : 0;
            d->c_step = d->m * d->ldc + rng_in(&r, 0, 3);
            p.a_span += d->count * d->a_step;
            p.b_span += d->count * d->b_step;
            p.c_span += d->count * d->c_step;
        }
        check_product(f, &r, &p);
    }
}

/* --- a graph ------------------------------------------------------------------------------ */
enum { SIDE = 256, COUNT = SIDE * SIDE };

/* c = whole numbers; b = c transposed; a = c, then b * c + a; sums of its columns. */
static void enqueue(dmi_queue *q, const dmi_backend *backend, float *a, float *b, float *c, double *sums)
{
    const int64_t shape[2] = {SIDE, SIDE};
    dmi_run run[2] = {{.len = SIDE}, {.len = SIDE}};
    dmi_fill fill;
    dmi_fill_values values = {.p0 = -4, .p1 = 5, .seed = 7};
    dmi_copy turn = {.ndim = 2,
                     .src_dtype = DM_F32,
                     .dst_dtype = DM_F32,
                     .nrun = {1, 1},
                     .run = {&run[0], &run[1]},
                     .src_stride = {1, SIDE},
                     .dst_stride = {SIDE, 1},
                     .count = COUNT};
    dmi_gemm gemm = {.dtype = DM_F32, .m = SIDE, .n = SIDE, .k = SIDE, .lda = SIDE, .ldb = SIDE, .ldc = SIDE};
    dmi_map floors = {.ndim = 1, .extent = {COUNT}, .dtype = {DM_F32, DM_I32}, .stride = {{1}, {1}}};
    dmi_map back = {.ndim = 1, .extent = {COUNT}, .dtype = {DM_I32, DM_F32}, .stride = {{1}, {1}}};
    assert_int_equal(dmi_map_row(DMI_EW_relu, &floors.dtype[0], NULL, DM_I32, &floors.program), DM_OK);
    assert_int_equal(dmi_map_row(DMI_EW_positive, &back.dtype[0], NULL, DM_F32, &back.program), DM_OK);
    dmi_reduce reduce = {.ndim = 2, .dtype = DM_F32, .reduced = 1, .extent = {SIDE, SIDE}, .stride = {SIDE, 1}};
    whole_fill(DMI_FILL_UNIFORM, DM_F32, 2, shape, &fill);
    dmi_run_fill(backend, q, &fill, &values, c);
    dmi_run_map(backend, q, &floors, NULL, 0, (void *[]){c, a}); /* whole numbers: the product is exact */
    dmi_run_map(backend, q, &back, NULL, 0, (void *[]){a, c});
    dmi_run_copy(backend, q, &turn, c, b);
    dmi_run_copy(backend, q, &turn, b, a);
    dmi_run_gemm(backend, q, &gemm, 1, b, c, 1, a, NULL);
    dmi_run_reduce(backend, q, &reduce, a, sums);
}

static void test_graph(void **state)
{
    fixture *f = begin_test(state);
    cudaStream_t stream = f->q->stream;
    cudaGraph_t graph;
    cudaGraphExec_t program;
    float *host = calloc(3 * COUNT, sizeof *host), *gpu = NULL;
    double *sums = calloc(SIDE, sizeof *sums), *gpu_sums = NULL;
    assert_true(host != NULL && sums != NULL);
    enqueue(NULL, dmi_backend_cpu(), host, host + COUNT, host + 2 * COUNT, sums);
    CUDA(cudaMalloc((void **)&gpu, 3 * COUNT * sizeof *gpu));
    CUDA(cudaMalloc((void **)&gpu_sums, SIDE * sizeof *gpu_sums));
    assert_true(dmi_cuda_queue_libraries(f->q));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue(f->q, dmi_backend_cuda(), gpu, gpu + COUNT, gpu + 2 * COUNT, gpu_sums);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&program, graph, 0));
    for (int replay = 0; replay < 3; replay++) {
        CUDA(cudaMemsetAsync(gpu, 0xff, 3 * COUNT * sizeof *gpu, stream));
        CUDA(cudaMemsetAsync(gpu_sums, 0xff, SIDE * sizeof *gpu_sums, stream));
        CUDA(cudaGraphLaunch(program, stream));
        finish(f);
        float *got = download(gpu, COUNT * (int64_t)sizeof *gpu);
        double *got_sums = download(gpu_sums, SIDE * (int64_t)sizeof *gpu_sums);
        check_same("graph", DM_F32, got, host, COUNT);
        check_same("graph's sums", DM_F64, got_sums, sums, SIDE);
        free(got);
        free(got_sums);
    }
    CUDA(cudaGraphExecDestroy(program));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(gpu));
    CUDA(cudaFree(gpu_sums));
    free(host);
    free(sums);
}

/* An error stays in the queue, and later calls do nothing. */
static void test_error_stays(void **state)
{
    fixture *f = begin_test(state);
    dmi_run run = {.len = 1};
    dmi_copy d = {.ndim = 1,
                  .src_dtype = DM_U8,
                  .dst_dtype = DM_U8,
                  .nrun = {1},
                  .run = {&run},
                  .src_stride = {1},
                  .dst_stride = {1},
                  .count = 1};
    dmi_queue *q = NULL;
    assert_int_equal(dmi_cuda_queue_create(0, &q), DM_OK);
    q->error = 1;
    dmi_run_copy(dmi_backend_cuda(), q, &d, NULL, NULL); /* would fault */
    assert_int_equal(cudaStreamSynchronize(q->stream), cudaSuccess);
    dmi_cuda_queue_destroy(q);
    assert_int_equal(dmi_cuda_queue_create(1000, &q), DM_ERR_STATE);
    dmi_cuda_queue_destroy(NULL);
    f->cases++;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_error_stays),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
