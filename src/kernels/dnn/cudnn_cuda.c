/* Convolutions by cuDNN, version 9, of 16-bit types, and of f32 where TF32 is allowed: without it products of
 * matrices are faster (adr/0019). Images and weights stay as they are: NHWC and KRSC. Strides over few
 * channels become channels first, and columns side by side outputs. Few groups are convolutions of their own:
 * the library has few engines for groups, and none for many shapes. Forward their channels stay where they are
 * if there is an engine for pixels that lie apart; and for gradients by the input, which are convolutions
 * forward of dy by turned weights. Else they are copied to the workspace and back: engines for gradients would
 * copy them too, of each group and less fast. The queues of a device share what is made for a shape. */
#include "device/cuda/cudnn.h"
#include "kernels/dnn/cudnn_plan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* TURNED_LEAST: channels; the engines for pixels that lie apart make 64 at once. */
enum { KEPT_MOST = 512, DEVICES = 256, TURNED_LEAST = 32 };

typedef struct kept {
    dmi_convolution shape; /* without what differs between slices; all padding is zero */
    int which;
    dmi_cudnn_plan plan;
    uint64_t used;
} kept;

typedef struct cache {
    int device, users; /* users: queues */
    int count;
    uint64_t clock;
    kept *kept[KEPT_MOST];
} cache;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all caches, and of what they have */
static cache *caches[DEVICES];

static void kept_free(kept *k)
{
    dmi_cudnn_plan_free(&k->plan);
    free(k);
}

static void leave(void *at)
{
    cache *c = at;
    pthread_mutex_lock(&lock);
    if (--c->users == 0) {
        for (int i = 0; i < c->count; i++) {
            kept_free(c->kept[i]);
        }
        caches[c->device] = NULL;
        free(c);
    }
    pthread_mutex_unlock(&lock);
}

/* The cache of the queue's device; NULL: there is no memory. */
static cache *join(dmi_queue *q, dmi_cudnn *dnn)
{
    if (!dnn->kept && q->device < DEVICES) {
        cache *c = caches[q->device] ? caches[q->device] : calloc(1, sizeof *c);
        if (c) {
            c->device = q->device;
            c->users++;
            caches[q->device] = c;
            dnn->kept = c;
            dnn->free = leave;
        }
    }
    return dnn->kept;
}

static void kept_make(kept *k, cudnnHandle_t handle, int64_t room)
{
    static const char *const names[] = {"forward", "by the input", "by the weights", "forward with bias",
                                        "forward, fused"};
    const dmi_convolution *d = &k->shape;
    int64_t begin = dmi_now_ns();
    dmi_cudnn_plan_make(&k->plan, handle, k->which, d, room);
    dmi_log(DMI_LOG_DEBUG,
            "cuDNN: %s, %s, %d x %d x %d x %d (of %d), kernel %d x %d, to %d (of %d), %d groups: %s %d, %.1f "
            "MB, in %.1f ms",
            names[k->which], dmi_dtype_name(d->dnn.dtype), (int)d->dnn.samples, (int)d->in[0], (int)d->in[1],
            (int)d->in[2], (int)d->dnn.pitch[DMI_CUDNN_X], (int)d->kernel[0], (int)d->kernel[1], (int)d->out[2],
            (int)d->dnn.pitch[DMI_CUDNN_Y], (int)d->group, k->plan.plan ? "engine" : "none", k->plan.candidate,
            (double)k->plan.bytes * 1e-6, (double)(dmi_now_ns() - begin) * 1e-6);
}

/* Finds what fits, or makes it in the place of what was not used for longest. NULL: there is no memory. */
static kept *kept_get(cache *c, int which, const dmi_convolution *d, cudnnHandle_t handle, int64_t room)
{
    int oldest = 0;
    kept wanted;
    memset(&wanted, 0, sizeof wanted);
    memcpy(&wanted.shape.in, d->in, sizeof *d - offsetof(dmi_convolution, in));
    wanted.shape.dnn.samples = d->dnn.samples;
    wanted.shape.dnn.dtype = d->dnn.dtype;
    wanted.shape.dnn.pitch[DMI_CUDNN_X] = d->dnn.pitch[DMI_CUDNN_X];
    wanted.shape.dnn.pitch[DMI_CUDNN_Y] = d->dnn.pitch[DMI_CUDNN_Y];
    wanted.which = which;
    for (int i = 0; i < c->count; i++) {
        kept *k = c->kept[i];
        if (k->which == which && memcmp(&k->shape, &wanted.shape, sizeof k->shape) == 0) {
            k->used = ++c->clock;
            return k;
        }
        oldest = k->used < c->kept[oldest]->used ? i : oldest;
    }
    kept *k = malloc(sizeof *k);
    if (!k) {
        return NULL;
    }
    memcpy(k, &wanted, sizeof *k);
    if (c->count == KEPT_MOST) {
        kept_free(c->kept[oldest]);
        c->kept[oldest] = k;
    } else {
        c->kept[c->count++] = k;
    }
    kept_make(k, handle, room);
    k->used = ++c->clock;
    return k;
}

/* Group by group, on its channels where they are. one: the convolution of a group. */
static cudnnStatus_t run_in_place(const kept *k, cudnnHandle_t handle, const dmi_convolution *d,
                                  const dmi_convolution *one, void *const operand[DMI_CUDNN_OPERANDS],
                                  char *workspace)
{
    cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
    int64_t elem = dmi_dtype_bytes(d->dnn.dtype);
    for (int64_t g = 0; g < d->group && s == CUDNN_STATUS_SUCCESS; g++) {
        void *part[DMI_CUDNN_OPERANDS] = {(char *)operand[0] + g * one->in[2] * elem,
                                          (char *)operand[1] + g * one->out[2] * elem,
                                          (char *)operand[2] + g * one->out[2] * one->columns[1] * elem,
                                          operand[3] ? (float *)operand[3] + g * one->out[2] : NULL};
        s = dmi_cudnn_plan_run(&k->plan, handle, part, workspace);
    }
    return s;
}

/* Forward by the library's own kernel, group by group. */
static void run_own(dmi_queue *q, const dmi_convolution *d, const dmi_convolution *one,
                    void *const operand[DMI_CUDNN_OPERANDS], char *workspace)
{
    int64_t pitch = dmi_cudnn_lines(one->in[2]),
            weights = one->out[2] * one->kernel[0] * one->kernel[1] * pitch;
    dmi_cuda_depth lines = {.samples = d->out[2],
                            .block = {1, 1},
                            .channels = (int)one->in[2],
                            .depth = (int)one->in[2],
                            .pitch = (int)pitch,
                            .turns = 1};
    for (int a = 0; a < 2; a++) {
        lines.in[a] = lines.out[a] = (int)d->kernel[a];
    }
    dmi_cuda_launch_depth(q, &lines, operand[2], workspace);
    for (int64_t g = 0; g < d->group; g++) {
        dmi_cuda_run_forward(q, one, (uint16_t *)operand[0] + g * one->in[2],
                             (uint16_t *)workspace + g * weights,
                             operand[3] ? (float *)operand[3] + g * one->out[2] : NULL,
                             (uint16_t *)operand[1] + g * one->out[2]);
    }
}

/* May the gradient by the input be a convolution forward, of dy by the turned weights? */
static bool turns(const dmi_convolution *d)
{
    bool can = dmi_cudnn_packs(d) && d->in[2] / d->group >= TURNED_LEAST;
    for (int a = 0; a < 2; a++) {
        can = can && d->stride[a] == 1 && d->pad[a] <= d->dilation[a] * (d->kernel[a] - 1);
    }
    return can;
}

/* That convolution, of a group. */
static dmi_convolution turned_of(const dmi_convolution *d)
{
    dmi_convolution t = *d;
    for (int a = 0; a < 2; a++) {
        t.in[a] = d->out[a];
        t.out[a] = d->in[a];
        t.pad[a] = d->dilation[a] * (d->kernel[a] - 1) - d->pad[a];
    }
    t.in[2] = d->out[2] / d->group;
    t.out[2] = d->in[2] / d->group;
    t.columns[1] = t.kernel[0] * t.kernel[1] * t.in[2];
    t.group = 1;
    t.dnn.pitch[DMI_CUDNN_X] = d->out[2];
    t.dnn.pitch[DMI_CUDNN_Y] = d->in[2];
    return t;
}

static cudnnStatus_t run_turned(dmi_queue *q, const kept *k, cudnnHandle_t handle, const dmi_convolution *d,
                                const dmi_convolution *one, void *const operand[DMI_CUDNN_OPERANDS],
                                char *workspace)
{
    const dmi_cuda_turned t = {.elem = (int)dmi_dtype_bytes(d->dnn.dtype),
                               .groups = d->group,
                               .outputs = one->in[2],
                               .channels = one->out[2],
                               .places = d->kernel[0] * d->kernel[1]};
    void *const forward[DMI_CUDNN_OPERANDS] = {operand[1], operand[0], workspace, NULL};
    dmi_cuda_launch_turned(q, &t, operand[2], workspace);
    return run_in_place(k, handle, d, one, forward, workspace + dmi_cudnn_part(d, d->out[2] * d->columns[1]));
}

/* Group by group, each an image of its own in the workspace. sums: of dy by channel, made on the way, or NULL.
 */
static cudnnStatus_t run_groups(dmi_queue *q, const kept *k, cudnnHandle_t handle, const dmi_convolution *d,
                                const dmi_convolution *one, void *const operand[DMI_CUDNN_OPERANDS], void *sums,
                                char *workspace)
{
    cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
    bool forward = k->which == DMI_CUDNN_FORWARD || k->which == DMI_CUDNN_BIASED;
    int64_t elem = dmi_dtype_bytes(d->dnn.dtype), x_rows = d->dnn.samples * d->in[0] * d->in[1],
            y_rows = d->dnn.samples * d->out[0] * d->out[1], weights = one->out[2] * d->columns[1] * elem;
    char *x = workspace, *y = x + dmi_cudnn_part(d, x_rows * d->in[2]);
    char *room = y + dmi_cudnn_part(d, y_rows * d->out[2]);
    if (k->which != DMI_CUDNN_DATA) {
        dmi_cuda_launch_groups(q, x_rows, d->in[2] * elem, d->group, false, operand[0], x);
    }
    if (sums) {
        dmi_cuda_launch_groups_sums(q, d->dnn.dtype, y_rows, d->out[2], d->group, operand[1], y, d->dnn.type[3],
                                    sums);
    } else if (!forward) {
        dmi_cuda_launch_groups(q, y_rows, d->out[2] * elem, d->group, false, operand[1], y);
    }
    for (int64_t g = 0; g < d->group && s == CUDNN_STATUS_SUCCESS; g++) {
        void *part[DMI_CUDNN_OPERANDS] = {x + g * x_rows * one->in[2] * elem,
                                          y + g * y_rows * one->out[2] * elem, (char *)operand[2] + g * weights,
                                          operand[3] ? (float *)operand[3] + g * one->out[2] : NULL};
        s = dmi_cudnn_plan_run(&k->plan, handle, part, room);
    }
    if (k->which == DMI_CUDNN_DATA) {
        dmi_cuda_launch_groups(q, x_rows, d->in[2] * elem, d->group, true, x, operand[0]);
    } else if (forward) {
        dmi_cuda_launch_groups(q, y_rows, d->out[2] * elem, d->group, true, y, operand[1]);
    }
    return s;
}

static dmi_cuda_depth depth_of(const dmi_convolution *d, const dmi_convolution *folded, bool weights)
{
    int side = (int)(folded->out[2] / d->out[2]);
    dmi_cuda_depth p = {.samples = weights ? d->out[2] : d->dnn.samples,
                        .channels = (int)d->in[2],
                        .depth = (int)folded->in[2],
                        .pitch = (int)folded->in[2],
                        .turns = weights ? side : 1,
                        .shift = (int)d->stride[1]};
    for (int a = 0; a < 2; a++) {
        p.in[a] = (int)(weights ? d->kernel[a] : d->in[a]);
        p.out[a] = (int)(weights ? folded->kernel[a] : folded->in[a]);
        p.block[a] = (int)d->stride[a] * (a == 1 ? side : 1);
        p.pad[a] = weights ? 0 : (int)d->pad[a];
    }
    return p;
}

/* Forward or by the weights, on blocks of pixels. k NULL: by the library's own kernels, from whole lines of
 * memory. */
static cudnnStatus_t run_folded(dmi_queue *q, const kept *k, int which, cudnnHandle_t handle,
                                const dmi_convolution *d, const dmi_convolution *folded,
                                void *const operand[DMI_CUDNN_OPERANDS], char *workspace)
{
    dmi_cuda_depth image = depth_of(d, folded, false), weights = depth_of(d, folded, true);
    int64_t pitch = dmi_cudnn_lines(folded->in[2]);
    char *x = workspace, *w = x + dmi_cudnn_part(d, d->dnn.samples * folded->in[0] * folded->in[1] * pitch);
    char *bias = w + dmi_cudnn_part(d, folded->out[2] * folded->kernel[0] * folded->kernel[1] * pitch);
    char *room = bias + dmi_cudnn_bias_bytes(folded);
    void *part[DMI_CUDNN_OPERANDS] = {x, operand[1], w, operand[3]};
    cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
    image.pitch = k ? image.pitch : (int)pitch;
    weights.pitch = k || which == DMI_CUDNN_WEIGHTS ? weights.pitch : (int)pitch;
    dmi_cuda_launch_depth(q, &image, operand[0], x);
    if (which != DMI_CUDNN_WEIGHTS) {
        dmi_cuda_launch_depth(q, &weights, operand[2], w);
    }
    if (operand[3] && weights.turns > 1) {
        dmi_cuda_launch_turns(q, d->out[2], weights.turns, operand[3], (float *)bias);
        part[3] = bias;
    }
    if (k) {
        s = dmi_cudnn_plan_run(&k->plan, handle, part, room);
    } else if (which == DMI_CUDNN_WEIGHTS) {
        dmi_cuda_run_weights(q, folded, x, pitch, operand[1], w, room);
    } else {
        dmi_cuda_run_forward(q, folded, x, w, part[3], operand[1]);
    }
    if (which == DMI_CUDNN_WEIGHTS) {
        dmi_cuda_launch_depth_back(q, &weights, d->dnn.dtype, w, operand[2]);
    }
    return s;
}

bool dmi_cudnn_conv(dmi_queue *q, int which, const dmi_convolution *d, void *const at[DMI_DNN_REFS],
                    void *workspace)
{
    static const int place[][3] = {{0, 2, 1}, {2, 0, 1}, {0, 1, 2}, {0, 2, 1}}; /* references of x, y, w */
    dmi_cudnn *dnn = q->library[DMI_LIBRARY_CUDNN];
    void *operand[DMI_CUDNN_OPERANDS] = {at[place[which][0]], at[place[which][1]], at[place[which][2]],
                                         which == DMI_CUDNN_BIASED ? at[3] : NULL};
    dmi_convolution one = *d;
    bool packs = dmi_cudnn_packs(d), folds = dmi_cudnn_folds(d) && which != DMI_CUDNN_DATA;
    bool forward = which == DMI_CUDNN_FORWARD || which == DMI_CUDNN_BIASED;
    const dmi_convolution turned = turned_of(d);
    if (!dnn || !dmi_cudnn_takes(d)) {
        return false;
    }
    if (packs) {
        one.group = 1;
        one.in[2] /= d->group;
        one.out[2] /= d->group;
    }
    if (folds) {
        dmi_cudnn_fold(d, &one);
    }
    one.dnn.pitch[DMI_CUDNN_X] = packs && forward ? d->in[2] : one.in[2];
    one.dnn.pitch[DMI_CUDNN_Y] = forward && dmi_conv_pitch(d) > one.out[2] ? dmi_conv_pitch(d) : one.out[2];
    pthread_mutex_lock(&lock);
    cache *c = join(q, dnn);
    bool by_turned = which == DMI_CUDNN_DATA && turns(d);
    bool own = (forward && dmi_cuda_forward_takes(q, &one)) ||
               (folds && which == DMI_CUDNN_WEIGHTS && dmi_cuda_weights_takes(q, &one, dmi_cudnn_room(d)));
    if (own && folds) {
        one.dnn.pitch[DMI_CUDNN_X] = dmi_cudnn_lines(one.in[2]);
    }
    kept *k = !c || own   ? NULL
              : by_turned ? kept_get(c, DMI_CUDNN_FUSED, &turned, dnn->handle, dmi_cudnn_room(d))
                          : kept_get(c, which, &one, dnn->handle, dmi_cudnn_room(d));
    bool in_place = packs && forward && k && k->plan.plan;
    if (by_turned && k && !k->plan.plan) {
        by_turned = false;
        k = kept_get(c, which, &one, dnn->handle, dmi_cudnn_room(d));
    }
    if (packs && forward && k && !in_place) {
        one.dnn.pitch[DMI_CUDNN_X] = one.in[2];
        one.dnn.pitch[DMI_CUDNN_Y] = one.out[2];
        k = kept_get(c, which, &one, dnn->handle, dmi_cudnn_room(d));
    }
    bool serves = own || (k && k->plan.plan);
    cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
    if (own && !folds) {
        run_own(q, d, &one, operand, workspace);
    } else if (serves) {
        void *sums = which == DMI_CUDNN_WEIGHTS ? at[3] : NULL;
        s = by_turned  ? run_turned(q, k, dnn->handle, d, &turned, operand, workspace)
            : in_place ? run_in_place(k, dnn->handle, d, &one, operand, workspace)
            : packs    ? run_groups(q, k, dnn->handle, d, &one, operand, sums, workspace)
            : folds    ? run_folded(q, k, which, dnn->handle, d, &one, operand, workspace)
                       : dmi_cudnn_plan_run(&k->plan, dnn->handle, operand, workspace);
    }
    pthread_mutex_unlock(&lock);
    if (s != CUDNN_STATUS_SUCCESS) {
        dmi_cuda_failed(q, "cuDNN", -1 - (int)s, cudnnGetErrorString(s));
    } else if (!k && !own) {
        dmi_cuda_failed(q, "cuDNN", -1, "no memory for a convolution");
    }
    return serves || !k;
}
