/* Small convolutions and inner products of f32 on Hopper GPUs, dealt in each way, against loops. */
#include "cuda/cuda_case.h"
#include "kernels/dnn/narrow_cuda.h"

/* Multiples of 1/8 so small that all sums are exact. */
static float *make_numbers(rng *r, int64_t n)
{
    float *p = malloc((size_t)n * sizeof *p);
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        p[i] = (float)rng_in(r, -8, 8) / 8;
    }
    return p;
}

static void random_shape(rng *r, dmi_convolution *d, bool inner)
{
    *d = (dmi_convolution){.dnn = {.dtype = DM_F32, .samples = rng_in(r, 1, inner ? 150 : 9)}, .group = 1};
    d->in[2] = rng_in(r, 0, 1) ? 4 * rng_in(r, 1, inner ? 60 : 9) : rng_in(r, 1, inner ? 200 : 9);
    d->out[2] = rng_in(r, 0, 1) ? 4 * rng_in(r, 1, 20) : rng_in(r, 1, 60);
    d->columns[1] = d->in[2];
    for (int a = 0; a < 2; a++) {
        d->kernel[a] = inner ? 1 : rng_in(r, 1, 5);
        d->stride[a] = inner ? 1 : rng_in(r, 1, 3);
        d->dilation[a] = inner ? 1 : rng_in(r, 1, 2);
        d->pad[a] = inner ? 0 : rng_in(r, 0, 3);
        int64_t reach = d->dilation[a] * (d->kernel[a] - 1), least = reach + 1 - 2 * d->pad[a];
        d->in[a] = inner ? 1 : rng_in(r, least > 1 ? least : 1, 16);
        d->out[a] = (d->in[a] + 2 * d->pad[a] - reach - 1) / d->stride[a] + 1;
        d->columns[1] *= d->kernel[a];
    }
}

/* What `call` does for each element of a window: places of x, y and w. */
typedef void each(void *context, int64_t x, int64_t y, int64_t w);
static void for_all(const dmi_convolution *d, each *call, void *context)
{
    int64_t out = d->dnn.samples * d->out[0] * d->out[1] * d->out[2],
            pitch = d->dnn.pitch[2] > 0 ? d->dnn.pitch[2] : d->out[2];
    for (int64_t i = 0; i < out; i++) {
        int64_t o = i % d->out[2], q = i / d->out[2] % d->out[1], p = i / d->out[2] / d->out[1] % d->out[0],
                n = i / d->out[2] / d->out[1] / d->out[0], w = o * d->columns[1];
        for (int64_t r = 0; r < d->kernel[0]; r++) {
            for (int64_t s = 0; s < d->kernel[1]; s++) {
                int64_t h = p * d->stride[0] - d->pad[0] + r * d->dilation[0],
                        v = q * d->stride[1] - d->pad[1] + s * d->dilation[1];
                bool inside = h >= 0 && h < d->in[0] && v >= 0 && v < d->in[1];
                for (int64_t c = 0; c < d->in[2]; c++, w++) {
                    if (inside) {
                        call(context, ((n * d->in[0] + h) * d->in[1] + v) * d->in[2] + c,
                             i / d->out[2] * pitch + o, w);
                    }
                }
            }
        }
    }
}
typedef struct sums {
    int kind;
    const float *image, *matrix;
    double *out;
} sums;
static void add(void *context, int64_t x, int64_t y, int64_t w)
{
    sums *s = context;
    if (s->kind == DMI_NARROW_FORWARD) {
        s->out[y] += (double)s->image[x] * (double)s->matrix[w];
    } else if (s->kind == DMI_NARROW_DATA) {
        s->out[x] += (double)s->image[y] * (double)s->matrix[w];
    } else {
        s->out[w] += (double)s->image[x] * (double)s->matrix[y];
    }
}

typedef struct operands {
    int64_t image, matrix, out, outputs;
    float *host[3], *gpu[5]; /* image, matrix, bias; out, sums */
} operands;

static operands make_operands(const dmi_convolution *d, int kind, rng *r)
{
    int64_t x = d->dnn.samples * d->in[0] * d->in[1] * d->in[2],
            places = d->dnn.samples * d->out[0] * d->out[1],
            y = places * (d->dnn.pitch[2] > 0 ? d->dnn.pitch[2] : d->out[2]), w = d->out[2] * d->columns[1];
    bool weights = kind == DMI_NARROW_WEIGHTS, forward = kind == DMI_NARROW_FORWARD;
    operands o = {.image = kind == DMI_NARROW_DATA ? y : x,
                  .matrix = weights ? y : w,
                  .out = forward   ? y
                         : weights ? w
                                   : x,
                  .outputs = d->out[2]};
    int64_t count[3] = {o.image, o.matrix, o.outputs};
    for (int i = 0; i < 3; i++) {
        o.host[i] = make_numbers(r, count[i]);
        o.gpu[i] = upload(o.host[i], count[i] * 4);
    }
    CUDA(cudaMalloc((void **)&o.gpu[3], (size_t)o.out * 4));
    CUDA(cudaMalloc((void **)&o.gpu[4], (size_t)o.outputs * 4));
    CUDA(cudaMemset(o.gpu[3], 0xff, (size_t)o.out * 4));
    CUDA(cudaMemset(o.gpu[4], 0xff, (size_t)o.outputs * 4));
    CUDA(cudaDeviceSynchronize());
    return o;
}

static void check(const dmi_convolution *d, int kind, const operands *o, const char *how)
{
    bool forward = kind == DMI_NARROW_FORWARD;
    int64_t pitch = d->dnn.pitch[2] > 0 ? d->dnn.pitch[2] : d->out[2];
    double *want = calloc((size_t)o->out, sizeof *want), *sum = calloc((size_t)o->outputs, sizeof *sum);
    float *got = download(o->gpu[3], o->out * 4), *got_sum = download(o->gpu[4], o->outputs * 4);
    assert_non_null(want);
    assert_non_null(sum);
    for_all(d, add, &(sums){kind, o->host[0], o->host[1], want});
    for (int64_t i = 0; i < o->out; i++) {
        if (forward && i % pitch >= d->out[2]) { /* between pixels nothing is written */
            uint32_t bits;
            memcpy(&bits, got + i, 4);
            assert_int_equal(bits, 0xffffffff);
            continue;
        }
        double value = want[i] + (forward ? (double)o->host[2][i % pitch] : 0);
        value = forward && d->relu && value < 0 ? 0 : value;
        if ((double)got[i] != value) {
            fail_msg("kind %d, %s: element %lld is %g, not %g", kind, how, (long long)i, (double)got[i], value);
        }
    }
    for (int64_t i = 0; kind == DMI_NARROW_WEIGHTS && i < o->matrix; i++) {
        sum[i % o->outputs] += (double)o->host[1][i];
    }
    for (int64_t i = 0; kind == DMI_NARROW_WEIGHTS && i < o->outputs; i++) {
        if ((double)got_sum[i] != sum[i]) {
            fail_msg("%s: sum %lld is %g, not %g", how, (long long)i, (double)got_sum[i], sum[i]);
        }
    }
    free(want);
    free(sum);
    free(got);
    free(got_sum);
}

static void end(operands *o)
{
    for (int i = 0; i < 5; i++) {
        CUDA(cudaFree(o->gpu[i]));
    }
    for (int i = 0; i < 3; i++) {
        free(o->host[i]);
    }
}

/* Dealt at random; false: the shape cannot be dealt so. */
static bool dealt_case(fixture *f, rng *r)
{
    dmi_convolution d;
    dmi_narrow_job job;
    char how[128];
    int kind = (int)rng_in(r, 0, 2);
    random_shape(r, &d, kind == DMI_NARROW_DATA || rng_in(r, 0, 2) == 0);
    if (kind == DMI_NARROW_FORWARD) {
        d.relu = rng_in(r, 0, 1);
        d.dnn.pitch[2] = d.out[2] + rng_in(r, 0, 1) * rng_in(r, 1, 8);
    }
    dmi_narrow_describe(&d, kind, &job);
    job.wide = rng_in(r, 0, 1) ? 3 : 5;
    job.spread = kind == DMI_NARROW_WEIGHTS ? DMI_NARROW_WARPS : 1 << rng_in(r, 0, 3);
    job.cluster = 1 << rng_in(r, 0, 3);
    job.parts = 1 << rng_in(r, 0, 2);
    if (!dmi_narrow_deal(&d, &job)) {
        return false;
    }
    snprintf(how, sizeof how, "%d wide, %d warps, clusters of %d, %d parts", job.wide, job.spread, job.cluster,
             job.parts);
    operands o = make_operands(&d, kind, r);
    job.image = o.gpu[0];
    job.matrix = o.gpu[1];
    job.bias = kind == DMI_NARROW_FORWARD ? o.gpu[2] : NULL;
    job.out = o.gpu[3];
    job.sums = o.gpu[4];
    job.partial = f->q->workspace;
    job.ticket = f->q->ticket + DMI_NARROW_FIRST_TICKET;
    dmi_cuda_launch_narrow(f->q, &job);
    finish(f);
    check(&d, kind, &o, how);
    end(&o);
    return true;
}

static bool is_hopper(void)
{
    struct cudaDeviceProp p;
    CUDA(cudaGetDeviceProperties(&p, 0));
    return p.major == 9 && p.minor == 0 && dmi_cuda_narrow_built();
}

static void test_dealt(void **state)
{
    fixture *f = begin_test(state);
    rng r = {11};
    if (!is_hopper()) {
        skip();
    }
    for (int64_t i = 0, n = rounds(f, 200); i < n;) {
        i += dealt_case(f, &r);
    }
}

/* As layers are, by the library's choice: LeNet's, a batch that is not even, CIFAR's first. */
static void test_chosen(void **state)
{
    fixture *f = begin_test(state);
    rng r = {12};
    static const dmi_convolution shapes[] = {
        {.dnn = {.samples = 64}, .in = {28, 28, 1}, .out = {24, 24, 20}, .kernel = {5, 5}, .columns = {0, 25}},
        {.dnn = {.samples = 7}, .in = {12, 12, 20}, .out = {8, 8, 50}, .kernel = {5, 5}, .columns = {0, 500}},
        {.dnn = {.samples = 20}, .in = {1, 1, 800}, .out = {1, 1, 500}, .kernel = {1, 1}, .columns = {0, 800}},
        {.dnn = {.samples = 64}, .in = {1, 1, 500}, .out = {1, 1, 10}, .kernel = {1, 1}, .columns = {0, 500}},
        {.dnn = {.samples = 9},
         .in = {32, 32, 3},
         .out = {32, 32, 32},
         .kernel = {5, 5},
         .pad = {2, 2},
         .columns = {0, 75}}};
    if (!is_hopper()) {
        skip();
    }
    for (int i = 0; i < 5; i++) {
        for (int kind = 0; kind < 3; kind++) {
            dmi_convolution d = shapes[i];
            d.dnn.dtype = DM_F32;
            d.group = d.stride[0] = d.stride[1] = d.dilation[0] = d.dilation[1] = 1;
            if (kind == DMI_NARROW_DATA && d.in[0] > 1) {
                continue;
            }
            operands o = make_operands(&d, kind, &r);
            dmi_cuda_narrow_at at = {.image = o.gpu[0],
                                     .matrix = o.gpu[1],
                                     .bias = kind == DMI_NARROW_FORWARD ? o.gpu[2] : NULL,
                                     .out = o.gpu[3],
                                     .sums = o.gpu[4]};
            assert_true(dmi_cuda_narrow(f->q, &d, kind, &at));
            finish(f);
            check(&d, kind, &o, "chosen");
            end(&o);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dealt), cmocka_unit_test(test_chosen)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
