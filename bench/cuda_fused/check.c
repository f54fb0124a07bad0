/* The fused product against cuBLAS: elements are eighths, so that every sum is exact in f32 in any order, and
 * what is rounded is the result alone. */
#include "fused_bench.h"

#include <cublas_v2.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct check_case {
    int64_t m, n, k;
    int trans_a, trans_b;
    dm_dtype dtype, c_dtype;
    double alpha, beta;
    fused_spread spread; /* owners 0: all of b is here */
    int blocks;
} check_case;

static const check_case cases[] = {
    {128, 256, 64, 0, 0, DM_BF16, DM_F32, 1, 0, {0}, 0},
    {256, 512, 512, 0, 0, DM_BF16, DM_F32, 1, 0, {0}, 0},
    {256, 512, 512, 0, 0, DM_BF16, DM_BF16, 1, 0, {0}, 0},
    {256, 512, 512, 0, 0, DM_F16, DM_F16, 1, 0, {0}, 0},
    {256, 512, 512, 0, 0, DM_F16, DM_F32, -1.5, 0.5, {0}, 0},
    {256, 512, 512, 1, 0, DM_BF16, DM_BF16, 1, 0, {0}, 0},
    {256, 512, 512, 0, 1, DM_BF16, DM_BF16, 1, 0, {0}, 0},
    {256, 512, 512, 1, 1, DM_BF16, DM_BF16, 1, 0, {0}, 0},
    {256, 512, 512, 1, 0, DM_F16, DM_F32, 1, 1, {0}, 0},
    {256, 512, 512, 0, 1, DM_F16, DM_F16, 2, -0.5, {0}, 0},
    {256, 512, 512, 1, 1, DM_F16, DM_F32, 1, 0, {0}, 0},
    {1, 1, 1, 0, 0, DM_BF16, DM_BF16, 1, 0, {0}, 0},
    {100, 300, 77, 0, 0, DM_BF16, DM_BF16, 1.5, 2, {0}, 0},
    {385, 515, 1001, 1, 0, DM_BF16, DM_F32, 1, -1, {0}, 0},
    {385, 515, 1001, 0, 1, DM_F16, DM_F16, 1, 0, {0}, 0},
    {129, 769, 129, 1, 1, DM_BF16, DM_BF16, 0.5, 1, {0}, 0},
    {3000, 2500, 2000, 0, 0, DM_BF16, DM_BF16, 1, 0, {0}, 0},
    {3000, 2500, 2000, 0, 0, DM_BF16, DM_F32, 1, 1, {0}, 6},
    {1024, 4096, 4096, 0, 0, DM_BF16, DM_BF16, 1, 0, {4, false, 1, 4}, 0},
    {2048, 4096, 2048, 0, 0, DM_BF16, DM_F32, 1, 0, {4, false, 4, 1}, 0},
    {2048, 4096, 2048, 0, 0, DM_BF16, DM_F32, 1, 0, {4, true, 2, 2}, 0},
    {1000, 3001, 2100, 0, 0, DM_BF16, DM_BF16, 1, 1, {3, false, 3, 2}, 0},
    {1000, 3001, 2100, 1, 0, DM_F16, DM_F32, 1, 0, {4, true, 3, 3}, 0},
    {1000, 3001, 2100, 0, 1, DM_BF16, DM_BF16, 1, 0, {4, false, 3, 2}, 0},
    {1000, 3001, 2100, 1, 1, DM_F16, DM_F16, 1, 0, {2, true, 3, 1}, 0},
    {200, 9000, 500, 0, 0, DM_BF16, DM_BF16, 1, 0, {3, false, 16, 2}, 0},
};

typedef struct buffers {
    void *a, *b, *gathered, *c, *ref;
    char *host_a, *host_b, *host_c;
    float *host_ref;
} buffers;

static int64_t padded(int64_t n)
{
    return (n + 7) / 8 * 8 + 8;
}

static uint16_t encode(dm_dtype dtype, float v) /* to nearest even; v is 0 or a normal number of either type */
{
    uint32_t bits, sign, keep = dtype == DM_BF16 ? 16 : 13;
    memcpy(&bits, &v, 4);
    sign = bits >> 16 & 0x8000;
    bits = (bits & 0x7fffffff);
    bits += (1u << (keep - 1)) - 1 + (bits >> keep & 1);
    if (dtype == DM_BF16) {
        return (uint16_t)(sign | bits >> 16);
    }
    return (uint16_t)(bits >> 23 < 113 ? sign : sign | ((bits >> 13) - (112u << 10)));
}

static float eighths(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((int)(*state >> 59) - 15) / 8; /* -15/8 .. 16/8 */
}

static void make_operand(dm_dtype dtype, int64_t count, uint64_t seed, char **host, void **gpu)
{
    uint16_t *v = NULL;
    fused_check(cudaHostAlloc((void **)&v, (size_t)count * 2, cudaHostAllocPortable), "memory");
    for (int64_t i = 0; i < count; i++) {
        v[i] = encode(dtype, eighths(&seed));
    }
    fused_check(cudaMalloc(gpu, (size_t)count * 2), "memory");
    fused_check(cudaMemcpy(*gpu, v, (size_t)count * 2, cudaMemcpyDefault), "copy");
    *host = (char *)v;
}

/* c: NaN where it is not to be read, and beyond each row's end; the reference has the same numbers. */
static void make_c(const check_case *w, int64_t ldc, buffers *x)
{
    uint64_t seed = 7;
    size_t bytes = (size_t)dmi_dtype_bytes(w->c_dtype), count = (size_t)(w->m * ldc);
    x->host_c = malloc(count * bytes);
    x->host_ref = malloc(count * 4);
    fused_check(x->host_c == NULL || x->host_ref == NULL ? cudaErrorMemoryAllocation : cudaSuccess, "memory");
    memset(x->host_c, 0xff, count * bytes);
    memset(x->host_ref, 0, count * 4);
    for (int64_t i = 0; i < w->m && w->beta != 0; i++) {
        for (int64_t j = 0; j < w->n; j++) {
            float v = eighths(&seed);
            uint16_t v16 = encode(w->c_dtype, v);
            x->host_ref[i * ldc + j] = v;
            memcpy(x->host_c + (size_t)(i * ldc + j) * bytes, bytes == 4 ? (void *)&v : (void *)&v16, bytes);
        }
    }
    fused_check(cudaMalloc(&x->c, count * bytes), "memory");
    fused_check(cudaMalloc(&x->ref, count * 4), "memory");
    fused_check(cudaMemcpy(x->c, x->host_c, count * bytes, cudaMemcpyDefault), "copy");
    fused_check(cudaMemcpy(x->ref, x->host_ref, count * 4, cudaMemcpyDefault), "copy");
}

static void reference(const fused_bench *t, const check_case *w, const dmi_fused *d, const buffers *x)
{
    float alpha = (float)w->alpha, beta = (float)w->beta;
    cudaDataType_t type = w->dtype == DM_F16 ? CUDA_R_16F : CUDA_R_16BF;
    cublasStatus_t s =
        cublasGemmEx(t->q->library[DMI_LIBRARY_CUBLAS], w->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, w->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                     (int)w->n, (int)w->m, (int)w->k, &alpha, x->b, type, (int)d->ldb, x->a, type, (int)d->lda,
                     &beta, x->ref, CUDA_R_32F, (int)d->ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    fused_check(s == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown, "cuBLAS");
}

/* Elements that are not what they should be; *first: the first of them. */
static int64_t compare(const check_case *w, int64_t ldc, buffers *x, int64_t *first)
{
    size_t bytes = (size_t)dmi_dtype_bytes(w->c_dtype), count = (size_t)(w->m * ldc);
    int64_t wrong = 0;
    fused_check(cudaMemcpy(x->host_c, x->c, count * bytes, cudaMemcpyDefault), "copy");
    fused_check(cudaMemcpy(x->host_ref, x->ref, count * 4, cudaMemcpyDefault), "copy");
    for (int64_t i = 0; i < w->m * ldc; i++) {
        float v = x->host_ref[i] + 0.0f; /* no negative zero */
        uint32_t expected = 0, got = 0;
        uint16_t v16 = encode(w->c_dtype, v);
        memcpy(&expected, bytes == 4 ? (void *)&v : (void *)&v16, bytes);
        memcpy(&got, x->host_c + (size_t)i * bytes, bytes);
        if (i % ldc >= w->n) {
            expected = bytes == 4 ? 0xffffffff : 0xffff;
        }
        if (got != expected && (got << (32 - 8 * bytes) != 0x80000000 || expected != 0)) {
            *first = wrong++ == 0 ? i : *first;
        }
    }
    return wrong;
}

static void free_all(buffers *x)
{
    void *gpu[] = {x->a, x->b, x->gathered, x->c, x->ref};
    for (int i = 0; i < DMI_COUNT(gpu); i++) {
        fused_check(cudaFree(gpu[i]), "memory");
    }
    fused_check(cudaFreeHost(x->host_a), "memory");
    fused_check(cudaFreeHost(x->host_b), "memory");
    free(x->host_c);
    free(x->host_ref);
}

static bool check_one(fused_bench *t, const check_case *w)
{
    dmi_fused_arrival chunk[DMI_FUSED_CHUNKS];
    buffers x = {0};
    int64_t first = 0, wrong, a_rows = w->trans_a ? w->k : w->m, b_rows = w->trans_b ? w->n : w->k;
    dmi_fused d = {.dtype = w->dtype, .c_dtype = w->c_dtype, .trans_a = w->trans_a, .trans_b = w->trans_b};
    d.m = w->m;
    d.n = w->n;
    d.k = w->k;
    d.lda = padded(w->trans_a ? w->m : w->k);
    d.ldb = padded(w->trans_b ? w->k : w->n);
    d.ldc = padded(w->n);
    d.blocks = w->blocks;
    t->value++;
    make_operand(w->dtype, a_rows * d.lda, 1, &x.host_a, &x.a);
    make_operand(w->dtype, b_rows * d.ldb, 2, &x.host_b, &x.b);
    make_c(w, d.ldc, &x);
    fused_check(cudaMalloc(&x.gathered, (size_t)(b_rows * d.ldb) * 2), "memory");
    fused_check(cudaMemset(x.gathered, 0xff, (size_t)(b_rows * d.ldb) * 2), "gathered operand");
    if (w->spread.owners > 0) {
        fused_spread_chunks(t, &w->spread, &d, chunk);
    }
    reference(t, w, &d, &x);
    fused_check(cudaDeviceSynchronize(), "reference");
    const void *b = d.chunks > 0 ? x.gathered : x.b, *own[2] = {NULL, fused_own(&d, x.b)};
    if (d.chunks > 0) { /* a's own part from where it is, too: in every second case */
        d.ld_own[0] = w->m % 2 == 0 ? d.lda : 0;
        own[0] = (const char *)x.a + 2 * (w->trans_a ? d.own_k0 * d.lda : d.own_k0);
    }
    bool served = dmi_cuda_fused_serves(t->q, &d, x.a, b, own, x.c);
    if (served) {
        dmi_cuda_launch_fused(t->q, &d, w->alpha, x.a, b, own, w->beta, x.c);
        fused_check_queue(t->q);
        fused_arrive(t, &d, x.host_b, x.gathered, false);
        fused_check(cudaStreamSynchronize(t->q->stream), "fused product");
    }
    wrong = compare(w, d.ldc, &x, &first);
    printf("%-5s %5" PRId64 " %5" PRId64 " %5" PRId64 " %c%c %s -> %s alpha %4g beta %4g, %2d chunks",
           wrong ? "WRONG" : "ok", w->m, w->n, w->k, w->trans_a ? 'T' : 'N', w->trans_b ? 'T' : 'N',
           dmi_dtype_name(w->dtype), dmi_dtype_name(w->c_dtype), w->alpha, w->beta, d.chunks);
    if (wrong) {
        printf(": %" PRId64 " wrong, first at %" PRId64 ", %" PRId64 "%s", wrong, first / d.ldc, first % d.ldc,
               served ? "" : " (not served)");
    }
    printf("\n");
    fflush(stdout);
    free_all(&x);
    return wrong == 0;
}

int fused_check_all(fused_bench *t)
{
    int bad = 0;
    for (int i = 0; i < DMI_COUNT(cases); i++) {
        bad += !check_one(t, &cases[i]);
    }
    return bad;
}
