/* Convolutions by oneDNN, version 2 or 3. Activations stay as they are (NHWC); weights are brought to the form
 * that the library wants before the convolution, or from it. Each thread keeps what it has made: primitives
 * take milliseconds to make. */
#include "kernels/dnn/onednn.h"
#include "kernels/dnn/dnn_cpu.h"

#include <cblas.h>
#include <dnnl.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MOST = 512, CHANNELS = 16 };

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t form; /* the form of an array: extents, strides or blocks */
#define GIVEN(md) (md)
#else
typedef const dnnl_memory_desc_t *form;
#define GIVEN(md) (&(md))
#endif

/* A convolution of one shape, ready to run. */
typedef struct kept {
    dmi_convolution shape; /* without what differs between slices; all padding is zero */
    int which;
    bool biased, serves;        /* serves: the library takes it */
    dnnl_primitive_t run, pack; /* pack: the weights from w to packed, or back; NULL: w is taken as it is */
    dnnl_memory_t x, y, w, packed, bias;
    uint64_t used;
} kept;

typedef struct cache {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int count;
    uint64_t clock;
    kept *kept[KEPT_MOST];
} cache;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void kept_free(kept *k)
{
    dnnl_memory_t memory[] = {k->x, k->y, k->w, k->packed, k->bias};
    for (int i = 0; i < DMI_COUNT(memory); i++) {
        (void)(memory[i] && dnnl_memory_destroy(memory[i]));
    }
    (void)(k->run && dnnl_primitive_destroy(k->run));
    (void)(k->pack && dnnl_primitive_destroy(k->pack));
    free(k);
}

static void cache_free(void *at)
{
    cache *c = at;
    for (int i = 0; i < c->count; i++) {
        kept_free(c->kept[i]);
    }
    (void)(c->stream && dnnl_stream_destroy(c->stream));
    (void)(c->engine && dnnl_engine_destroy(c->engine));
    free(c);
}

static void make_key(void)
{
    (void)pthread_key_create(&key, cache_free);
}

/* This thread's; NULL: there is no memory. */
static cache *cache_get(void)
{
    pthread_once(&once, make_key);
    cache *c = pthread_getspecific(key);
    if (!c && (c = calloc(1, sizeof *c)) != NULL) {
        if (dnnl_engine_create(&c->engine, dnnl_cpu, 0) != dnnl_success ||
            dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags) != dnnl_success ||
            pthread_setspecific(key, c) != 0) {
            cache_free(c);
            return NULL;
        }
    }
    return c;
}

/* The forms of the operands: as they lie, and weights as the library likes them. */
typedef struct forms {
    dnnl_memory_desc_t x, y, w, any, bias;
    bool made;
} forms;

static bool form_make(dnnl_memory_desc_t *out, int ndim, const dnnl_dims_t dims, const int64_t *strides)
{
#if DNNL_VERSION_MAJOR >= 3
    return (strides ? dnnl_memory_desc_create_with_strides(out, ndim, dims, dnnl_f32, strides)
                    : dnnl_memory_desc_create_with_tag(out, ndim, dims, dnnl_f32, dnnl_format_tag_any)) ==
           dnnl_success;
#else
    return (strides
                ? dnnl_memory_desc_init_by_strides(out, ndim, dims, dnnl_f32, strides)
                : dnnl_memory_desc_init_by_tag(out, ndim, dims, dnnl_f32, dnnl_format_tag_any)) == dnnl_success;
#endif
}

static bool forms_make(const dmi_convolution *d, forms *f)
{
    int64_t n = d->dnn.samples, g = d->group, in = d->in[2] / g, out = d->out[2] / g;
    int64_t r = d->kernel[0], s = d->kernel[1];
    dnnl_dims_t x = {n, d->in[2], d->in[0], d->in[1]}, y = {n, d->out[2], d->out[0], d->out[1]};
    dnnl_dims_t bias = {d->out[2]}, one = {1};
    /* the library's arrays begin at the first or the second */
    int64_t w[DNNL_MAX_NDIMS + 1] = {g, out, in, r, s};
    int64_t w_stride[DNNL_MAX_NDIMS + 1] = {out * r * s * in, r * s * in, 1, s * in, in};
    dnnl_dims_t x_stride = {d->in[0] * d->in[1] * d->in[2], 1, d->in[1] * d->in[2], d->in[2]};
    dnnl_dims_t y_stride = {d->out[0] * d->out[1] * d->out[2], 1, d->out[1] * d->out[2], d->out[2]};
    int skip = g == 1; /* the dim of groups */
    memset(f, 0, sizeof *f);
    return form_make(&f->x, 4, x, x_stride) && form_make(&f->y, 4, y, y_stride) &&
           form_make(&f->w, 5 - skip, w + skip, w_stride + skip) &&
           form_make(&f->any, 5 - skip, w + skip, NULL) && form_make(&f->bias, 1, bias, one);
}

static void forms_free(forms *f)
{
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t all[] = {f->x, f->y, f->w, f->any, f->bias};
    for (int i = 0; i < DMI_COUNT(all); i++) {
        (void)(all[i] && dnnl_memory_desc_destroy(all[i]));
    }
#else
    (void)f;
#endif
}

/* How windows move, in the library's terms. */
typedef struct moves {
    dnnl_dims_t stride, dilation, pad;
} moves;

/* The primitive that is described; forward: a hint for gradients, NULL for the convolution itself. */
static bool describe(const kept *k, cache *c, forms *f, const moves *m, dnnl_primitive_desc_t forward,
                     dnnl_primitive_desc_t *out)
{
#if DNNL_VERSION_MAJOR >= 3
    form bias = k->biased ? f->bias : NULL;
    int which = forward ? k->which : DMI_ONEDNN_FORWARD;
    return (which == DMI_ONEDNN_FORWARD
                ? dnnl_convolution_forward_primitive_desc_create(
                      out, c->engine, dnnl_forward_training, dnnl_convolution_direct, f->x, f->any, bias, f->y,
                      m->stride, m->dilation, m->pad, m->pad, NULL)
            : which == DMI_ONEDNN_DATA
                ? dnnl_convolution_backward_data_primitive_desc_create(
                      out, c->engine, dnnl_convolution_direct, f->x, f->any, f->y, m->stride, m->dilation,
                      m->pad, m->pad, forward, NULL)
                : dnnl_convolution_backward_weights_primitive_desc_create(
                      out, c->engine, dnnl_convolution_direct, f->x, f->any, NULL, f->y, m->stride, m->dilation,
                      m->pad, m->pad, forward, NULL)) == dnnl_success;
#else
    dnnl_convolution_desc_t d;
    form bias = k->biased ? &f->bias : NULL;
    int which = forward ? k->which : DMI_ONEDNN_FORWARD;
    dnnl_status_t status =
        which == DMI_ONEDNN_FORWARD
            ? dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct,
                                                         &f->x, &f->any, bias, &f->y, m->stride, m->dilation,
                                                         m->pad, m->pad)
        : which == DMI_ONEDNN_DATA
            ? dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &f->x, &f->any,
                                                               &f->y, m->stride, m->dilation, m->pad, m->pad)
            : dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &f->x, &f->any,
                                                                  NULL, &f->y, m->stride, m->dilation, m->pad,
                                                                  m->pad);
    return status == dnnl_success &&
           dnnl_primitive_desc_create(out, &d, NULL, c->engine, forward) == dnnl_success;
#endif
}

static bool reorder_make(cache *c, form from, form to, dnnl_primitive_t *out)
{
    dnnl_primitive_desc_t d = NULL;
    bool made = dnnl_reorder_primitive_desc_create(&d, from, c->engine, to, c->engine, NULL) == dnnl_success &&
                dnnl_primitive_create(out, d) == dnnl_success;
    (void)(d && dnnl_primitive_desc_destroy(d));
    return made;
}

/* The memories, and the change of the weights' form where there is one. */
static bool memories_make(kept *k, cache *c, forms *f, const_dnnl_primitive_desc_t described)
{
    bool back = k->which == DMI_ONEDNN_WEIGHTS;
    form own = GIVEN(f->w);
    form liked =
        dnnl_primitive_desc_query_md(described, back ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    bool made = liked && dnnl_memory_create(&k->x, GIVEN(f->x), c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
                dnnl_memory_create(&k->y, GIVEN(f->y), c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
                dnnl_memory_create(&k->w, own, c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
                dnnl_memory_create(&k->bias, GIVEN(f->bias), c->engine, DNNL_MEMORY_NONE) == dnnl_success;
    if (made && !dnnl_memory_desc_equal(own, liked)) {
        made = dnnl_memory_create(&k->packed, liked, c->engine, DNNL_MEMORY_ALLOCATE) == dnnl_success &&
               reorder_make(c, back ? liked : own, back ? own : liked, &k->pack);
    }
    return made;
}

static bool kept_make(kept *k, cache *c)
{
    const dmi_convolution *d = &k->shape;
    dnnl_primitive_desc_t forward = NULL, gradient = NULL;
    moves m = {{0}};
    forms f;
    for (int i = 0; i < 2; i++) {
        m.stride[i] = d->stride[i];
        m.dilation[i] = d->dilation[i] - 1;
        m.pad[i] = d->pad[i];
    }
    bool made = forms_make(d, &f) && describe(k, c, &f, &m, NULL, &forward);
    if (made && k->which != DMI_ONEDNN_FORWARD) {
        made = describe(k, c, &f, &m, forward, &gradient);
    }
    const_dnnl_primitive_desc_t described = gradient ? gradient : forward;
    made =
        made && memories_make(k, c, &f, described) && dnnl_primitive_create(&k->run, described) == dnnl_success;
    (void)(gradient && dnnl_primitive_desc_destroy(gradient));
    (void)(forward && dnnl_primitive_desc_destroy(forward));
    forms_free(&f);
    return made;
}

/* Finds what fits, or makes it in the place of what was not used for longest. */
static kept *kept_get(cache *c, const kept *wanted)
{
    int oldest = 0;
    for (int i = 0; i < c->count; i++) {
        kept *k = c->kept[i];
        if (k->which == wanted->which && k->biased == wanted->biased &&
            memcmp(&k->shape, &wanted->shape, sizeof k->shape) == 0) {
            k->used = ++c->clock;
            return k;
        }
        oldest = k->used < c->kept[oldest]->used ? i : oldest;
    }
    kept *k = malloc(sizeof *k);
    if (!k) {
        return NULL;
    }
    memcpy(k, wanted, sizeof *k);
    if (c->count == KEPT_MOST) {
        kept_free(c->kept[oldest]);
        c->kept[oldest] = k;
    } else {
        c->kept[c->count++] = k;
    }
    k->serves = kept_make(k, c);
    k->used = ++c->clock;
    return k;
}

static bool execute(cache *c, dnnl_primitive_t primitive, int count, const dnnl_exec_arg_t *args)
{
    return dnnl_primitive_execute(primitive, c->stream, count, args) == dnnl_success &&
           dnnl_stream_wait(c->stream) == dnnl_success;
}

static bool run(cache *c, kept *k)
{
    bool data = k->which == DMI_ONEDNN_DATA, back = k->which == DMI_ONEDNN_WEIGHTS;
    dnnl_memory_t w = k->pack ? k->packed : k->w;
    dnnl_exec_arg_t all[] = {{data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, k->x},
                             {data || back ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, k->y},
                             {back ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w},
                             {DNNL_ARG_BIAS, k->bias}};
    dnnl_exec_arg_t change[] = {{DNNL_ARG_FROM, back ? w : k->w}, {DNNL_ARG_TO, back ? k->w : w}};
    return (!k->pack || back || execute(c, k->pack, 2, change)) && execute(c, k->run, k->biased ? 4 : 3, all) &&
           (!k->pack || !back || execute(c, k->pack, 2, change));
}

bool dmi_onednn_conv(int which, const dmi_kernel_call *call)
{
    static const int place[][3] = {{0, 2, 1}, {2, 0, 1}, {0, 1, 2}}; /* references of x, y, w */
    const dmi_convolution *d = call->desc;
    kept wanted;
    if (call->queue || d->dnn.dtype != DM_F32 || d->dnn.samples == 0 || /* queue: an emulated GPU's */
        (which == DMI_ONEDNN_FORWARD && dmi_conv_pitch(d) != d->out[2]) ||
        (which == DMI_ONEDNN_DATA && d->in[2] / d->group % CHANNELS != 0)) { /* slower than a product there */
        return false;
    }
    memset(&wanted, 0, sizeof wanted);
    memcpy(&wanted.shape.in, d->in, sizeof *d - offsetof(dmi_convolution, in));
    wanted.shape.dnn.samples = d->dnn.samples;
    wanted.which = which;
    wanted.biased = which == DMI_ONEDNN_FORWARD && d->dnn.count[3] > 0;
    omp_set_num_threads(openblas_get_num_threads()); /* of this thread; primitives are made for so many */
    cache *c = cache_get();
    kept *k = c ? kept_get(c, &wanted) : NULL;
    if (!k || !k->serves) {
        return false;
    }
    return dnnl_memory_set_data_handle(k->x, dmi_dnn_at(call, place[which][0])) == dnnl_success &&
           dnnl_memory_set_data_handle(k->y, dmi_dnn_at(call, place[which][1])) == dnnl_success &&
           dnnl_memory_set_data_handle(k->w, dmi_dnn_at(call, place[which][2])) == dnnl_success &&
           (!wanted.biased || dnnl_memory_set_data_handle(k->bias, dmi_dnn_at(call, 3)) == dnnl_success) &&
           run(c, k);
}
