/* Layers on images like those of AlexNet's first layer: N x 55 x 55 x 96. */
#include "cuda_bench.h"

#include <dmath/layers.h>
#include <string.h>

enum { SIDE = 55, POOLED = 27, CHANNELS = 96 };

static const dmi_number numbers[3] = {{.re = 1e-4}, {.re = 0.75}, {.re = 1}};

static void run(const bench *t, int kernel, const dmi_dnn *desc, void *const *at, void *workspace)
{
    dmi_kernel_call call = {
        .queue = t->q, .desc = desc, .number = numbers, .numbers = 3, .workspace = workspace};
    memcpy(call.at, at, DMI_DNN_REFS * sizeof *at);
    (void)!dmi_kernels[kernel].cuda(&call);
}

static void elements(dmi_dnn *d, int r, int64_t count, dm_dtype type)
{
    d->type[r] = type;
    d->count[r] = count;
}

static void run_pooling(const bench *t)
{
    bool back = t->kind == DMI_KERNEL_pooling_back, taps = t->to == DM_U8, max = t->to == DM_F32 || taps;
    dmi_pooling d = {.dnn = {.dtype = DM_F32, .samples = t->n},
                     .method = max ? DM_POOL_MAX : DM_POOL_AVERAGE,
                     .taps = taps,
                     .in = {SIDE, SIDE, CHANNELS},
                     .out = {POOLED, POOLED, CHANNELS},
                     .kernel = {3, 3},
                     .stride = {2, 2}};
    int64_t x = t->n * SIDE * SIDE * CHANNELS, y = t->n * POOLED * POOLED * CHANNELS;
    elements(&d.dnn, 0, taps ? y : back && !max ? 0 : x, taps ? DM_U8 : DM_F32);
    elements(&d.dnn, 1, y, DM_F32);
    elements(&d.dnn, 2, back ? x : 0, DM_F32);
    run(t, t->kind, &d.dnn, (void *[DMI_DNN_REFS]){t->a, back ? (char *)t->b + x * 4 : t->b, t->b}, t->c);
}

static void run_lrn(const bench *t)
{
    bool back = t->kind == DMI_KERNEL_lrn_back;
    dmi_lrn d = {.dnn = {.dtype = DM_F32, .samples = t->n}, .size = 5, .unit = CHANNELS};
    for (int r = 0; r < 3; r++) {
        elements(&d.dnn, r, t->n * SIDE * SIDE * CHANNELS, DM_F32);
    }
    run(t, t->kind, &d.dnn, (void *[DMI_DNN_REFS]){t->a, back ? t->c : t->b, t->b}, t->c);
}

static void run_channels(const bench *t)
{
    dmi_channel_rows d = {.dnn = {.dtype = DM_F32, .samples = t->n}, .rows = SIDE * SIDE, .channels = CHANNELS};
    int64_t count = t->n * SIDE * SIDE * CHANNELS;
    elements(&d.dnn, 0, count, DM_F32);
    elements(&d.dnn, 1, CHANNELS, DM_F64);
    elements(&d.dnn, 2, t->to == DM_F64 ? count : 0, DM_F32);
    run(t, DMI_KERNEL_channel_sums, &d.dnn, (void *[DMI_DNN_REFS]){t->a, t->b, t->c}, NULL);
}

static void run_relu(const bench *t)
{
    dmi_channel_rows d = {.dnn = {.dtype = DM_F32, .samples = t->n, .pitch = CHANNELS},
                          .rows = SIDE * SIDE,
                          .channels = CHANNELS};
    for (int r = 0; r < 3; r++) {
        elements(&d.dnn, r, t->n * SIDE * SIDE * CHANNELS, DM_F32);
    }
    elements(&d.dnn, 3, CHANNELS, DM_F64);
    run(t, DMI_KERNEL_relu_sums, &d.dnn,
        (void *[DMI_DNN_REFS]){t->a, t->c, t->b, (char *)t->b + 4 * d.dnn.count[2]}, NULL);
}

/* Softmax with probabilities, its gradient, and sigmoid losses. */
static void run_loss(const bench *t)
{
    bool pair = t->kind == DMI_KERNEL_pair_loss, back = t->kind == DMI_KERNEL_softmax_back;
    dmi_labelled d = {.dnn = {.dtype = DM_F32, .samples = t->n},
                      .places = pair ? SIDE * SIDE * CHANNELS : SIDE * SIDE,
                      .classes = pair ? 1 : CHANNELS,
                      .batch = t->n};
    int64_t count = t->n * SIDE * SIDE * CHANNELS;
    elements(&d.dnn, 0, count, DM_F32);
    elements(&d.dnn, 1, count / d.classes, pair ? DM_F32 : DM_I32);
    elements(&d.dnn, 2, back ? count : 1, back ? DM_F32 : DM_F64);
    elements(&d.dnn, 3, pair || back ? 0 : count, DM_F32);
    run(t, t->kind, &d.dnn,
        (void *[DMI_DNN_REFS]){t->a, pair ? t->b : t->c, pair ? t->c : t->b, (char *)t->b + 256}, NULL);
}

void cuda_bench_layers(bench *t)
{
    t->n = t->rows * t->cols / (SIDE * SIDE * CHANNELS) / 2;
    double x = 4.0 * (double)t->n * SIDE * SIDE * CHANNELS, y = 4.0 * (double)t->n * POOLED * POOLED * CHANNELS;
    static const struct {
        const char *what;
        bench_fn *fn;
        int kernel;
        dm_dtype kind;
        double x, y; /* how often each is read or written */
    } row[] = {{"pooling, max of 3x3/2", run_pooling, DMI_KERNEL_pooling, DM_F32, 1, 1},
               {"pooling, mean of 3x3/2", run_pooling, DMI_KERNEL_pooling, DM_F64, 1, 1},
               {"its gradient, max", run_pooling, DMI_KERNEL_pooling_back, DM_F32, 2, 1},
               {"the same, places kept", run_pooling, DMI_KERNEL_pooling_back, DM_U8, 1, 1.25},
               {"its gradient, mean", run_pooling, DMI_KERNEL_pooling_back, DM_F64, 1, 1},
               {"local response normalisation of 5", run_lrn, DMI_KERNEL_lrn, DM_F32, 2, 0},
               {"its gradient", run_lrn, DMI_KERNEL_lrn_back, DM_F32, 3, 0},
               {"channel sums", run_channels, DMI_KERNEL_channel_sums, DM_F32, 1, 0},
               {"channel sums of products", run_channels, DMI_KERNEL_channel_sums, DM_F64, 2, 0},
               {"gradient of ReLU, with channel sums", run_relu, DMI_KERNEL_relu_sums, DM_F32, 3, 0},
               {"softmax loss, 96 classes", run_loss, DMI_KERNEL_softmax_loss, DM_F32, 2, 0},
               {"its gradient, 96 classes", run_loss, DMI_KERNEL_softmax_back, DM_F32, 2, 0},
               {"sigmoid loss", run_loss, DMI_KERNEL_pair_loss, DM_F32, 2, 0}};
    for (int i = 0; i < DMI_COUNT(row); i++) {
        t->kind = row[i].kernel;
        t->to = row[i].kind;
        if (t->kind == DMI_KERNEL_softmax_loss) {
            cuda_bench_check(cudaMemset(t->c, 0, (size_t)x), "labels");
        }
        cuda_bench_report(t, row[i].what, row[i].x * x + row[i].y * y, row[i].fn);
    }
}
