/* Small products of f32 on Hopper GPUs: which they are, and how they are dealt. */
#include "kernels/dnn/narrow_cuda.h"

/* Thread blocks for so many multiprocessors, whatever the GPU has: the order of a sum follows from the
 * descriptor. SHALLOW: depth that is not spread over warps. LEAST: of the depth in a thread block. */
enum { MULTIPROCESSORS = 132, SHALLOW = 32, LEAST = 32, LEAST_OF_WEIGHTS = 128 };
/* Multiplications at most, as a power of 2, by kind: of inner products; of convolutions, whose windows would be
 * copied for cuBLAS. As measured (adr/0081). */
static const int most_of[2][3] = {{25, 24, 24}, {27, 0, 25}};
enum { SHARED_BYTES = 227 << 10 };

static int32_t units_of(int64_t length, int64_t unit)
{
    return (int32_t)((length + unit - 1) / unit);
}

void dmi_narrow_describe(const dmi_convolution *d, int kind, dmi_narrow_job *job)
{
    int64_t pixels = d->out[0] * d->out[1], places = d->kernel[0] * d->kernel[1], all = d->dnn.samples * pixels;
    bool data = kind == DMI_NARROW_DATA, weights = kind == DMI_NARROW_WEIGHTS;
    *job = (dmi_narrow_job){.kind = kind,
                            .one = places == 1,
                            .batch = (int32_t)d->dnn.samples,
                            .channels = (int32_t)(data ? d->out[2] : d->in[2]),
                            .columns = (int32_t)(data ? d->in[2] : d->out[2]),
                            .rows = (int32_t)(weights ? places * d->in[2] : all),
                            .depth = (int32_t)(weights ? all
                                               : data  ? d->out[2]
                                                       : places * d->in[2]),
                            .relu = kind == DMI_NARROW_FORWARD && d->relu,
                            .pitch = (int32_t)(data ? d->in[2] : dmi_conv_pitch(d))};
    for (int a = 0; a < 2; a++) {
        job->stride[a] = (int32_t)d->stride[a];
        job->dilation[a] = (int32_t)d->dilation[a];
        job->pad[a] = (int32_t)d->pad[a];
        job->in[a] = (int32_t)d->in[a];
    }
    job->channel = dmi_cuda_divide_by(job->channels);
    job->column = dmi_cuda_divide_by(d->kernel[1]);
    job->height = dmi_cuda_divide_by(d->out[0]);
    job->width = dmi_cuda_divide_by(d->out[1]);
}

/* At least n, of words that lanes a row or a column apart have in banks of their own. */
static int32_t apart(int32_t n, bool fours)
{
    int32_t quads = (n + 3) / 4;
    return fours ? 4 * (quads | 1) : n | 1;
}

/* The windows that a thread block has, in `images` and `lines`. */
static bool deal_windows(dmi_narrow_job *job)
{
    int32_t height = (int32_t)job->height.extent, width = (int32_t)job->width.extent,
            splits = job->cluster * job->parts, target = DMI_NARROW_ROWS * DMI_NARROW_WARPS / job->spread;
    if (job->kind == DMI_NARROW_WEIGHTS) {
        job->images = units_of(job->batch, splits);
        job->lines = splits > job->batch ? units_of(height, splits / job->batch) : height;
        job->down = units_of(job->rows + 1, DMI_NARROW_ROWS);
        return job->spread == DMI_NARROW_WARPS;
    }
    job->images = DMI_MIN(DMI_MAX(1, target / (height * width)), job->batch);
    job->lines = DMI_MIN(height, target / width);
    if (job->lines == 0) {
        return false;
    }
    job->lines = units_of(height, units_of(height, job->lines)); /* all alike */
    job->down = units_of(job->batch, job->images) * units_of(height, job->lines);
    return job->lines == height || job->images == 1;
}

bool dmi_narrow_deal(const dmi_convolution *d, dmi_narrow_job *job)
{
    bool forward = job->kind == DMI_NARROW_FORWARD, weights = job->kind == DMI_NARROW_WEIGHTS;
    int32_t columns = 4 * job->wide, width = (int32_t)job->width.extent, splits = job->cluster * job->parts;
    if (!deal_windows(job)) {
        return false;
    }
    job->across = units_of(job->columns, columns);
    int64_t deep =
        weights ? (int64_t)job->images * job->lines * width : units_of(units_of(job->depth, 4), splits) * 4;
    if (deep > SHARED_BYTES || job->down > UINT16_MAX || job->across > UINT16_MAX ||
        (job->parts > 1 && job->across * job->down * job->cluster > DMI_NARROW_TICKETS)) {
        return false;
    }
    job->deep_of = (int32_t)deep;
    job->deep = DMI_MIN(job->channels, !job->one ? job->channels : weights ? DMI_NARROW_ROWS : job->deep_of);
    bool fours = job->channels % 4 == 0; /* and so `deep` */
    job->patch_pitch = weights ? job->deep + (fours ? 4 : 1) : apart(job->deep, fours);
    for (int a = 0; a < 2; a++) {
        job->patch[a] = ((a == 0 ? job->lines : width) - 1) * job->stride[a] +
                        (int32_t)((d->kernel[a] - 1) * d->dilation[a]) + 1;
    }
    int32_t side = DMI_MIN(columns, job->columns), row = (int32_t)(forward ? deep : side);
    job->flat = weights && job->across == 1 && job->lines * width * job->columns % 4 == 0 &&
                (int32_t)job->height.extent * width * job->columns % 4 == 0;
    job->chunk[0] = fours ? 4 : 1;
    job->chunk[1] = job->flat || (forward ? job->depth : job->columns) % 4 == 0 ? 4 : 1;
    job->matrix_pitch = forward ? apart(row, true) : job->flat ? job->columns : (side + 3) / 4 * 4;
    job->chunks[0] = dmi_cuda_divide_by(job->deep / job->chunk[0]);
    job->chunks[1] = dmi_cuda_divide_by(DMI_MAX(row / job->chunk[1], 1));
    job->lines_of = dmi_cuda_divide_by(job->patch[0]);
    job->columns_of = dmi_cuda_divide_by(job->patch[1]);
    job->bands = dmi_cuda_divide_by(units_of(job->height.extent, job->lines));
    job->tile = dmi_cuda_divide_by(DMI_NARROW_ROWS * DMI_NARROW_WARPS / job->spread);
    int64_t patch = (int64_t)job->images * job->patch[0] * job->patch[1] * job->patch_pitch,
            matrix = (int64_t)job->matrix_pitch * (forward ? columns : deep) + columns,
            from = (patch + 3) / 4 * 4, offsets = from + (matrix + 3) / 4 * 4,
            floats = offsets + (deep + 3) / 4 * 4;
    if (floats > SHARED_BYTES) {
        return false;
    }
    job->matrix_from = (int32_t)from;
    job->offsets_from = (int32_t)offsets;
    job->floats = (int32_t)floats;
    return dmi_narrow_bytes(job) <= SHARED_BYTES;
}

int64_t dmi_narrow_bytes(const dmi_narrow_job *job)
{
    int64_t columns = (int64_t)4 * job->wide, sums = (DMI_NARROW_ROWS + 8) * columns * DMI_NARROW_WARPS;
    return (DMI_MAX(job->floats, sums) + DMI_NARROW_ROWS * DMI_NARROW_WARPS / job->spread * (columns | 1)) *
           (int64_t)sizeof(float);
}

/* As many thread blocks as run at once. */
static bool choose(const dmi_convolution *d, int kind, dmi_narrow_job *job)
{
    dmi_narrow_describe(d, kind, job);
    bool weights = kind == DMI_NARROW_WEIGHTS;
    job->wide = job->columns <= 12 ? 3 : 5;
    job->spread = !weights && job->depth <= SHALLOW ? 1 : DMI_NARROW_WARPS;
    job->cluster = job->parts = 1;
    if (!deal_windows(job)) {
        return false;
    }
    int64_t tiles = (int64_t)job->down * units_of(job->columns, 4 * job->wide),
            least = weights ? LEAST_OF_WEIGHTS : LEAST;
    int32_t splits = 1;
    while (job->spread > 1 && splits * 2 * tiles <= MULTIPROCESSORS && job->depth >= splits * 2 * least &&
           (weights || splits < DMI_NARROW_CLUSTER)) {
        splits *= 2;
    }
    job->cluster = DMI_MIN(splits, DMI_NARROW_CLUSTER);
    job->parts = splits / job->cluster;
    return dmi_narrow_deal(d, job);
}

static bool fits(const dmi_convolution *d, int kind)
{
    int64_t out = d->dnn.samples * d->out[0] * d->out[1], weights = d->out[2] * d->columns[1];
    int64_t most = INT64_C(1) << most_of[d->columns[1] > d->in[2]][kind];
    return d->dnn.dtype == DM_F32 && !d->tf32 && d->group == 1 && out > 0 && weights > 0 &&
           out <= most / weights && d->dnn.samples * d->in[0] * d->in[1] <= most / d->in[2] &&
           out * dmi_conv_pitch(d) < INT32_MAX;
}

bool dmi_cuda_narrow(dmi_queue *q, const dmi_convolution *d, int kind, const dmi_cuda_narrow_at *at)
{
    dmi_narrow_job job;
    bool serves = fits(d, kind) && q->capability == 90 && dmi_cuda_narrow_built() && choose(d, kind, &job);
    if (serves) {
        job.image = at->image;
        job.matrix = at->matrix;
        job.bias = at->bias;
        job.out = at->out;
        job.sums = at->sums;
        job.partial = q->workspace;
        job.ticket = q->ticket + DMI_NARROW_FIRST_TICKET;
        dmi_cuda_launch_narrow(q, &job);
    }
    return serves;
}

bool dmi_cuda_narrow_inner(dmi_queue *q, const dmi_inner *d, int kind, const dmi_cuda_narrow_at *at)
{
    dmi_convolution c = {.dnn = {.dtype = d->dnn.dtype, .samples = d->dnn.samples},
                         .in = {1, 1, d->in},
                         .out = {1, 1, d->out},
                         .kernel = {1, 1},
                         .stride = {1, 1},
                         .dilation = {1, 1},
                         .group = 1,
                         .columns = {0, d->in},
                         .tf32 = d->tf32};
    return dmi_cuda_narrow(q, &c, kind, at);
}
