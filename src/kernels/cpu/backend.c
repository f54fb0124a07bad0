#include "kernels/cpu/cpu.h"

/* The CPU has no queue: every kernel is done when it returns. */
static void copy(dmi_queue *q, const dmi_copy *d, const void *src, void *dst)
{
    (void)q;
    dmi_cpu_copy(d, src, dst);
}

static void gemm(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                 void *c)
{
    (void)q;
    dmi_cpu_gemm(d, alpha, a, b, beta, c);
}

static void ewise(dmi_queue *q, const dmi_ewise *d, double alpha, const void *a, double beta, const void *b,
                  void *out)
{
    (void)q;
    dmi_cpu_ewise(d, alpha, a, beta, b, out);
}

static void fill(dmi_queue *q, const dmi_fill *d, const dmi_fill_values *v, void *out)
{
    (void)q;
    dmi_cpu_fill(d, v, out);
}

static void reduce(dmi_queue *q, const dmi_reduce *d, const void *in, void *acc)
{
    (void)q;
    dmi_cpu_reduce(d, in, acc);
}

static void acc_add(dmi_queue *q, const dmi_acc_add *d, const void *part, void *acc)
{
    (void)q;
    dmi_cpu_acc_add(d, part, acc);
}

static void acc_store(dmi_queue *q, const dmi_acc_store *d, double scale, const void *acc, double beta,
                      void *out)
{
    (void)q;
    dmi_cpu_acc_store(d, scale, acc, beta, out);
}

static void fold(dmi_queue *q, const dmi_fold *d, double scale, const void *rows, const void *own, double beta,
                 void *out)
{
    (void)q;
    dmi_cpu_fold(d, scale, rows, own, beta, out);
}

/* Everything is here: the stretches of k before, in and behind the own part. */
static void fused(dmi_queue *q, const dmi_fused_gemm *d, const dmi_arrival *arrival, double alpha,
                  const void *a, const void *b, const void *const own[2], double beta, void *c)
{
    bool some = d->own_k1 > d->own_k0;
    int64_t cut[4] = {0, some ? d->own_k0 : d->gemm.k, some ? d->own_k1 : d->gemm.k, d->gemm.k};
    (void)q;
    (void)arrival;
    for (int i = 0, first = 1; i < 3; i++) {
        dmi_gemm g = d->gemm;
        g.k = cut[i + 1] - cut[i];
        if (g.k == 0 && (d->gemm.k > 0 || !first)) {
            continue;
        }
        bool own_a = i == 1 && d->ld_own[0] > 0, own_b = i == 1;
        g.a_offset = own_a ? d->own_offset[0] : g.a_offset + cut[i] * (g.trans_a ? g.lda : 1);
        g.b_offset = own_b ? d->own_offset[1] : g.b_offset + cut[i] * (g.trans_b ? 1 : g.ldb);
        g.lda = own_a ? d->ld_own[0] : g.lda;
        g.ldb = own_b ? d->ld_own[1] : g.ldb;
        dmi_cpu_gemm(&g, alpha, own_a ? own[0] : a, own_b ? own[1] : b, first ? beta : 1, c);
        first = 0;
    }
}

static const dmi_backend cpu = {"cpu", copy, gemm, ewise, fill, reduce, acc_add, acc_store, fold, fused};

const dmi_backend *dmi_backend_cpu(void)
{
    return &cpu;
}
