/* Gradients of convolutions by the weights on Hopper GPUs, in each form and in any number of ranges, against
 * loops. */
#include "cuda/cuda_case.h"
#include "kernels/dnn/hopper_cuda.h"

static uint16_t *make_numbers(rng *r, dm_dtype t, int64_t n)
{
    uint16_t *p = malloc((size_t)n * sizeof *p);
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) {
        encode_float(t, ldexpl((real)rng_in(r, -64, 64), -5), p + i);
    }
    return p;
}

static double *opened(dm_dtype t, const uint16_t *p, int64_t n)
{
    double *v = malloc((size_t)n * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) {
        v[i] = (double)decode(t, p + i);
    }
    return v;
}

/* w[o, r, s, c]: all terms are whole multiples of 2^-10, so that the sum is exact. */
static double sum_of(const dmi_convolution *d, const double *x, const double *dy, int64_t o, int64_t r,
                     int64_t s, int64_t c)
{
    int64_t in = d->in[2] / d->group, out = d->out[2] / d->group;
    double sum = 0;
    for (int64_t n = 0; n < d->dnn.samples; n++) {
        for (int64_t i = 0; i < d->out[0]; i++) {
            for (int64_t j = 0; j < d->out[1]; j++) {
                int64_t h = i - d->pad[0] + r * d->dilation[0], v = j - d->pad[1] + s * d->dilation[1];
                if (h >= 0 && h < d->in[0] && v >= 0 && v < d->in[1]) {
                    sum += dy[((n * d->out[0] + i) * d->out[1] + j) * d->out[2] + o] *
                           x[((n * d->in[0] + h) * d->in[1] + v) * d->dnn.pitch[0] + o / out * in + c];
                }
            }
        }
    }
    return sum;
}

static void check(const dmi_convolution *d, const double *x, const double *dy, const uint16_t *w)
{
    int64_t at = 0;
    for (int64_t o = 0; o < d->out[2]; o++) {
        for (int64_t r = 0; r < d->kernel[0]; r++) {
            for (int64_t s = 0; s < d->kernel[1]; s++) {
                for (int64_t c = 0; c < d->in[2] / d->group; c++, at++) {
                    double want = sum_of(d, x, dy, o, r, s, c), got = (double)decode(d->dnn.dtype, w + at);
                    double bound = fabs(want) * (d->dnn.dtype == DM_F16 ? 0x1p-11 : 0x1p-8) + 0x1p-20;
                    if (!(fabs(got - want) <= bound)) {
                        fail_msg("output %lld, place %lld, %lld, channel %lld: %g, not %g", (long long)o,
                                 (long long)r, (long long)s, (long long)c, got, want);
                    }
                }
            }
        }
    }
}

static void random_shape(rng *r, dmi_convolution *d)
{
    d->dnn.dtype = rng_in(r, 0, 1) ? DM_F16 : DM_BF16;
    d->dnn.samples = rng_in(r, 1, 5);
    for (int a = 0; a < 2; a++) {
        d->stride[a] = 1;
        d->kernel[a] = rng_in(r, 1 + (a == 1), 4);
        d->dilation[a] = rng_in(r, 1, 2);
        d->pad[a] = rng_in(r, 0, 4);
        int64_t reach = d->dilation[a] * (d->kernel[a] - 1);
        d->in[a] = rng_in(r, reach + 1 > 2 * d->pad[a] ? reach + 1 - 2 * d->pad[a] : 1, 12);
        d->out[a] = d->in[a] + 2 * d->pad[a] - reach;
    }
}

static void weights_case(fixture *f, rng *r)
{
    dmi_weights_job job;
    int form = (int)rng_in(r, 0, DMI_WEIGHTS_FORMS - 1);
    const dmi_weights_form *form_of = &dmi_weights_forms[form];
    dmi_convolution d = {.group = rng_in(r, 1, 2)};
    random_shape(r, &d);
    d.in[2] = d.group * form_of->width * rng_in(r, 1, 2);
    d.out[2] = d.group * 8 * rng_in(r, 1, 30);
    d.dnn.pitch[0] = d.in[2] + 8 * rng_in(r, 0, 2);
    assert_true(dmi_weights_plan(&d, form, &job) > 0);
    job.ranges = (int32_t)rng_in(r, 1, job.steps < DMI_WEIGHTS_RANGES ? job.steps : DMI_WEIGHTS_RANGES);
    int64_t pixels = d.dnn.samples * d.in[0] * d.in[1] * d.dnn.pitch[0],
            places = d.dnn.samples * d.out[0] * d.out[1] * d.out[2],
            weights = d.out[2] * d.kernel[0] * d.kernel[1] * (d.in[2] / d.group);
    uint16_t *x = make_numbers(r, d.dnn.dtype, pixels), *dy = make_numbers(r, d.dnn.dtype, places);
    double *x_opened = opened(d.dnn.dtype, x, pixels), *dy_opened = opened(d.dnn.dtype, dy, places);
    void *gpu_x = upload(x, pixels * 2), *gpu_dy = upload(dy, places * 2), *gpu_w = NULL, *parts = NULL;
    CUDA(cudaMalloc(&gpu_w, (size_t)weights * 2));
    CUDA(cudaMalloc(&parts, (size_t)dmi_weights_bytes(&job)));
    CUDA(cudaMemset(gpu_w, 0xff, (size_t)weights * 2));
    CUDA(cudaMemset(parts, 0xff, (size_t)dmi_weights_bytes(&job)));
    CUDA(cudaDeviceSynchronize());
    job.w = gpu_w;
    job.parts = parts;
    dmi_cuda_run_weights_job(f->q, &d, &job, gpu_x, d.dnn.pitch[0], gpu_dy);
    finish(f);
    uint16_t *w = download(gpu_w, weights * 2);
    check(&d, x_opened, dy_opened, w);
    CUDA(cudaFree(gpu_x));
    CUDA(cudaFree(gpu_dy));
    CUDA(cudaFree(gpu_w));
    CUDA(cudaFree(parts));
    free(x);
    free(dy);
    free(x_opened);
    free(dy_opened);
    free(w);
}

/* y[n, i, j, o], of pixels that lie apart */
static double y_of(const dmi_convolution *d, const double *x, const double *w, const float *bias, int64_t place,
                   int64_t o)
{
    int64_t in = d->in[2], j = place % d->out[1], i = place / d->out[1] % d->out[0],
            n = place / d->out[1] / d->out[0];
    double sum = bias ? (double)bias[o] : 0;
    for (int64_t r = 0; r < d->kernel[0]; r++) {
        for (int64_t s = 0; s < d->kernel[1]; s++) {
            int64_t h = i - d->pad[0] + r * d->dilation[0], v = j - d->pad[1] + s * d->dilation[1];
            for (int64_t c = 0; c < in && h >= 0 && h < d->in[0] && v >= 0 && v < d->in[1]; c++) {
                sum += x[((n * d->in[0] + h) * d->in[1] + v) * d->dnn.pitch[0] + c] *
                       w[((o * d->kernel[0] + r) * d->kernel[1] + s) * dmi_cudnn_lines(in) + c];
            }
        }
    }
    return bias && d->relu && sum < 0 ? 0 : sum;
}

static void forward_case(fixture *f, rng *r)
{
    dmi_convolution d = {.group = 1, .relu = rng_in(r, 0, 1)};
    random_shape(r, &d);
    d.in[2] = (rng_in(r, 0, 1) ? 48 : 64) * rng_in(r, 1, 2);
    d.out[2] = 8 * rng_in(r, 1, 30);
    d.dnn.pitch[0] = d.in[2] + 8 * rng_in(r, 0, 3);
    d.dnn.pitch[1] = d.out[2] + 8 * rng_in(r, 0, 3);
    int64_t places = d.dnn.samples * d.out[0] * d.out[1],
            pixels = d.dnn.samples * d.in[0] * d.in[1] * d.dnn.pitch[0],
            weights = d.out[2] * d.kernel[0] * d.kernel[1] * dmi_cudnn_lines(d.in[2]),
            bytes = places * d.dnn.pitch[1] * 2;
    uint16_t *x = make_numbers(r, d.dnn.dtype, pixels), *w = make_numbers(r, d.dnn.dtype, weights);
    double *x_opened = opened(d.dnn.dtype, x, pixels), *w_opened = opened(d.dnn.dtype, w, weights);
    float bias[240];
    for (int i = 0; i < 240; i++) {
        bias[i] = (float)rng_in(r, -16, 16);
    }
    bool has_bias = rng_in(r, 0, 2) > 0;
    void *gpu_x = upload(x, pixels * 2), *gpu_w = upload(w, weights * 2), *gpu_bias = upload(bias, sizeof bias),
         *gpu_y = NULL;
    CUDA(cudaMalloc(&gpu_y, (size_t)bytes));
    CUDA(cudaMemset(gpu_y, 0xff, (size_t)bytes));
    CUDA(cudaDeviceSynchronize());
    dmi_cuda_run_forward(f->q, &d, gpu_x, gpu_w, has_bias ? gpu_bias : NULL, gpu_y);
    finish(f);
    uint16_t *y = download(gpu_y, bytes);
    for (int64_t i = 0; i < places * d.dnn.pitch[1]; i++) {
        int64_t place = i / d.dnn.pitch[1], o = i % d.dnn.pitch[1];
        if (o >= d.out[2]) {
            if (y[i] != 0xffff) {
                fail_msg("place %lld: written beyond %lld outputs", (long long)place, (long long)d.out[2]);
            }
            continue;
        }
        double want = y_of(&d, x_opened, w_opened, has_bias ? bias : NULL, place, o),
               got = (double)decode(d.dnn.dtype, y + i);
        if (!(fabs(got - want) <= fabs(want) * (d.dnn.dtype == DM_F16 ? 0x1p-11 : 0x1p-8) + 0x1p-20)) {
            fail_msg("place %lld, output %lld of %lld: %g, not %g", (long long)place, (long long)o,
                     (long long)d.out[2], got, want);
        }
    }
    CUDA(cudaFree(gpu_x));
    CUDA(cudaFree(gpu_w));
    CUDA(cudaFree(gpu_y));
    CUDA(cudaFree(gpu_bias));
    free(x);
    free(w);
    free(x_opened);
    free(w_opened);
    free(y);
}

static fixture *begin(void **state)
{
    fixture *f = begin_test(state);
    dmi_convolution one = {.group = 1, .in = {9, 9, 64}, .out = {7, 7, 64}, .kernel = {3, 3}, .stride = {1, 1}};
    one.dnn.samples = 1;
    one.dnn.dtype = DM_BF16;
    one.dilation[0] = one.dilation[1] = 1;
    if (!dmi_cuda_hopper_serves(f->q, &one)) {
        skip(); /* not a Hopper GPU */
    }
    return f;
}

static void test_weights(void **state)
{
    fixture *f = begin(state);
    rng r = {11};
    for (int64_t n = rounds(f, 40); n > 0; n--) {
        weights_case(f, &r);
    }
}

static void test_forward(void **state)
{
    fixture *f = begin(state);
    rng r = {12};
    for (int64_t n = rounds(f, 60); n > 0; n--) {
        forward_case(f, &r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_forward)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
