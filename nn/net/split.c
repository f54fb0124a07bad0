/* How workers share the inner products: each worker its samples and all weights, or all samples and the weights
 * of some outputs ("features"). A layer that may be split by features computes its outputs in ranges, one by
 * one, wherever they are: all sums have the same terms in the same order in both forms. */
#include "net/net.h"

#include <string.h>

/* Weights from which on a layer is cut where nobody has asked: fewer are not worth the calls. */
static const int64_t most_uncut = INT64_C(4000000);

/* What the estimate takes the workers for. Only ratios matter. */
static const double link_bytes = 5e9, memory_bytes = 10e9, flops = 50e9; /* in a second */
enum { UPDATE_PASSES = 5 };                                              /* over weights, in an update */

nn_deal nn_deal_out(const nn_net *net, int64_t count, int64_t size)
{
    const int workers = dm_workers(net->session);
    nn_deal d = {.count = count, .size = size};
    d.ranges = (int)((count + size - 1) / size);
    d.each = (d.ranges + workers - 1) / workers;
    d.holders = (d.ranges + d.each - 1) / d.each;
    return d;
}

static int64_t range_of(const nn_net *net, int64_t count)
{
    int64_t ranges = net->slices > 0 ? net->slices : dm_workers(net->session);
    return (count + ranges - 1) / ranges;
}

/* Rows of the first worker, which has the most. */
static double most(const nn_deal *d)
{
    int64_t rows = d->each * d->size;
    return (double)(rows < d->count ? rows : d->count);
}

/* Bytes of an element of a gradient, on its way to who adds up. */
static double wire_bytes(const nn_net *net)
{
    return (double)dm_dtype_bytes(net->wire ? net->wire : DM_F32);
}

/* --- the update */
static bool is_inner(const nn_layer *l)
{
    return l && strcmp(l->type->name, "InnerProduct") == 0;
}

static bool takes_used(const nn_layer *l)
{
    return strcmp(l->type->name, "Convolution") == 0 || strcmp(l->type->name, "Deconvolution") == 0 ||
           is_inner(l);
}

bool nn_update_may_deal(const nn_net *net, const nn_param *p)
{
    bool may =
        net->phase == NN_TRAIN && p->rounds && !p->range && p->lr_mult != 0 && dm_workers(net->session) > 1;
    for (int k = 0; may && k < net->layer_count; k++) {
        for (int i = 0; i < net->layers[k].params; i++) {
            may = may && (net->layers[k].param[i] != p || takes_used(&net->layers[k]));
        }
    }
    return may;
}

static bool will_deal(const nn_net *net, const nn_param *p)
{
    return net->update == DM_UPDATE_DEALT || (net->update == DM_UPDATE_DEFAULT && p->count > NN_MOST_FLAT);
}

/* Rows of the weights that the worker with most updates, in a layer whose samples are dealt out. */
static double updated(const nn_layer *l, bool dealt)
{
    const int64_t rows = l->param[0]->shape[0], workers = dealt ? dm_workers(l->net->session) : 1;
    return (double)((rows + workers - 1) / workers);
}

nn_split_cost nn_update_estimate(const nn_layer *l, bool dealt)
{
    const int workers = dm_workers(l->net->session);
    const int64_t batch = l->bottom[0]->shape[0], rows = l->param[0]->shape[0];
    const nn_deal x = nn_deal_out(l->net, batch, range_of(l->net, batch));
    const double real = (double)dm_dtype_bytes(DM_F32), all = (double)l->param[0]->count * real,
                 back = dealt ? (double)dm_dtype_bytes(l->net->type) / real : 1,
                 there = x.each * wire_bytes(l->net) / real;
    nn_split_cost cost = {.bytes = (there + back) * all * (workers - 1) / workers};
    cost.seconds =
        cost.bytes / link_bytes + UPDATE_PASSES * all * updated(l, dealt) / (double)rows / memory_bytes;
    return cost;
}

nn_split_cost nn_split_estimate(const nn_layer *l, bool by_features)
{
    const int workers = dm_workers(l->net->session);
    const int64_t *w = l->param[0]->shape, batch = l->bottom[0]->shape[0];
    const nn_deal x = nn_deal_out(l->net, batch, range_of(l->net, batch)),
                  y = nn_deal_out(l->net, w[0], range_of(l->net, w[0]));
    const double n = (double)batch, in = (double)w[1], out = (double)w[0], own = most(&x), rows = most(&y);
    const double element = (double)dm_dtype_bytes(l->net->type), real = (double)dm_dtype_bytes(DM_F32);
    const int back = l->net->phase == NN_TRAIN;
    nn_split_cost cost = {0};
    if (workers == 1) {
        cost.bytes = 0;
    } else if (!by_features) { /* each slice's gradient to who adds up a segment, the sum to all */
        cost.bytes = back * (x.each * wire_bytes(l->net) + real) * in * out * (workers - 1) / workers;
    } else { /* samples to all holders; outputs and their gradients there and back; the parts of dx */
        double both = own * in * (y.holders - 1) + (n - own) * rows + back * own * (out - rows) +
                      back * l->down[0] * y.each * (n - own) * in;
        double only = own * in * y.holders + back * own * out; /* of a worker with samples and no outputs */
        cost.bytes = element * (x.holders > y.holders && only > both ? only : both);
    }
    double share = by_features ? rows / out : own / n;
    double held = by_features ? rows * in : updated(l, will_deal(l->net, l->param[0])) * in;
    cost.seconds = cost.bytes / link_bytes + back * UPDATE_PASSES * held * real / memory_bytes +
                   2 * (1 + back + back * l->down[0]) * share * n * in * out / flops;
    return cost;
}

/* What `asked` says of a layer: -1: nothing, 0: batch, 1: features. *seen: one more if it says something. */
static int find(const char *asked, const char *layer, int *seen)
{
    int found = -1;
    for (const char *at = asked; at && *at;) {
        size_t n = strcspn(at, ","), name = strlen(layer);
        if (n > name && strncmp(at, layer, name) == 0 && at[name] == '=') {
            *seen += found < 0;
            found = n - name == strlen("=features") && strncmp(at + name, "=features", n - name) == 0;
        }
        at += n + (at[n] == ',');
    }
    return found;
}

/* Each word is LAYER=batch or LAYER=features. */
static dm_status check(const char *asked, int *count)
{
    for (const char *at = asked; at && *at; ++*count) {
        size_t n = strcspn(at, ","), k = n;
        while (k > 0 && at[k - 1] != '=') {
            k--;
        }
        bool good = k > 1 && ((n - k == 5 && strncmp(at + k, "batch", 5) == 0) ||
                              (n - k == 8 && strncmp(at + k, "features", 8) == 0));
        if (!good) {
            return dm_error_set(DM_ERR_ARG, "split: '%.*s' is not LAYER=batch or LAYER=features", (int)n, at);
        }
        at += n + (at[n] == ',');
    }
    return DM_OK;
}

static const nn_layer *other_of(const nn_net *share, const char *name)
{
    for (int i = 0; share && i < share->layer_count; i++) {
        if (strcmp(share->layers[i].name, name) == 0) {
            return &share->layers[i];
        }
    }
    return NULL;
}

/* A layer that uses the weights of another is split as that one is. */
static dm_status choose(nn_layer *l, const char *asked, int *seen, const nn_net *share)
{
    const nn_net *net = l->net;
    const nn_layer *other = l->param[0]->owner != l ? l->param[0]->owner : other_of(share, l->name);
    int wish = find(asked, l->name, seen);
    if (nn_inner_by_rows(l)) {
        return wish == 1 ? dm_error_set(DM_ERR_UNSUPPORTED,
                                        "split: layer '%s' has transposed weights or an axis that is not 1: it "
                                        "cannot be split by features",
                                        l->name)
                         : DM_OK;
    }
    if (wish >= 0 && l->param[0]->owner != l) {
        return dm_error_set(DM_ERR_ARG, "split: layer '%s' uses the weights of '%s': name that one", l->name,
                            other->name);
    }
    if (other) {
        const int64_t rows = l->param[0]->shape[0];
        l->ranges = is_inner(other) && other->ranges ? nn_deal_out(net, rows, range_of(net, rows)).ranges : 0;
        l->by_features = is_inner(other) && other->by_features;
        l->split_asked = other->split_asked;
    } else if (wish >= 0 || l->param[0]->count > most_uncut) {
        const int64_t rows = l->param[0]->shape[0];
        l->split_asked = wish >= 0;
        l->by_features = wish >= 0 ? wish == 1
                                   : net->phase == NN_TRAIN && nn_split_estimate(l, true).seconds <
                                                                   nn_split_estimate(l, false).seconds;
        l->ranges = l->by_features || net->slices > 0 ? nn_deal_out(net, rows, range_of(net, rows)).ranges : 0;
    }
    for (int i = 0; i < l->params && l->by_features; i++) {
        l->param[i]->range = range_of(net, l->param[i]->shape[0]);
    }
    return DM_OK;
}

dm_status nn_split_choose(nn_net *net, const char *asked, const nn_net *share)
{
    int words = 0, seen = 0;
    dm_status status = check(asked, &words);
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        if (is_inner(&net->layers[i])) {
            status = choose(&net->layers[i], asked, &seen, share);
        }
    }
    return status == DM_OK && seen < words
               ? dm_error_set(DM_ERR_ARG,
                              "split: '%s' names a layer that is no InnerProduct of the net, or one twice",
                              asked)
               : status;
}
