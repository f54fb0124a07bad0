/* How workers share layers with weights: each worker its samples and all weights; or all samples and the
 * weights of some outputs ("features"); or some samples and the weights of some outputs, as a grid ("both"). A
 * layer that may be split by features computes its outputs in ranges, one by one, wherever they are: all sums
 * have the same terms in the same order in all forms. */
#include "net/net.h"

#include <math.h>
#include <string.h>

/* Weights from which on a layer is cut where nobody has asked: fewer are not worth the calls. */
static const int64_t most_uncut = INT64_C(4000000);

/* What the estimate takes the workers for where nobody asks to measure. Only ratios matter. */
static const nn_speed usual = {.link = 5e9, .memory = 10e9, .flops = 50e9, .wait = 5e-4};
enum { UPDATE_PASSES = 5 }; /* over weights, in an update */

nn_deal nn_deal_out(int64_t count, int64_t size, int workers)
{
    nn_deal d = {.count = count, .size = size};
    d.ranges = (int)((count + size - 1) / size);
    d.each = (d.ranges + workers - 1) / workers;
    d.holders = (d.ranges + d.each - 1) / d.each;
    return d;
}

/* --- what is cut */
static bool is(const nn_layer *l, const char *type)
{
    return l && strcmp(l->type->name, type) == 0;
}

static bool cuts(const nn_layer *l)
{
    return (l->type->traits & NN_CUTS) != 0;
}

bool nn_split_is_large(const nn_layer *l)
{
    return l->param[0]->count > most_uncut && !nn_inner_by_rows(l) && !nn_conv_is_nd(l);
}

static int64_t outputs_of(const nn_layer *l)
{
    return l->top[0]->shape[1];
}

int nn_split_groups(const nn_layer *l)
{
    return is(l, "InnerProduct") ? 1 : l->u.conv.group;
}

/* Groups of a deconvolution are not cut: their weights would lie in blocks of two dims. */
int64_t nn_split_range(const nn_layer *l, const nn_split *split)
{
    const int64_t outputs = outputs_of(l), ranges = l->net->slices > 0 ? l->net->slices : split->parts[1];
    const int64_t groups = nn_split_groups(l), group = outputs / groups, size = (outputs + ranges - 1) / ranges;
    int64_t part = size;
    if (groups == 1) {
        return size;
    }
    while (size < group && group % part != 0) {
        part--;
    }
    bool whole = size >= group || 2 * part < size || is(l, "Deconvolution");
    return whole ? (size + group - 1) / group * group : part;
}

/* --- estimates */
typedef struct costing {
    const nn_layer *l;
    const nn_split *split;
    nn_deal blobs, samples, outputs; /* of the batch, as blobs lie; of both, as the split has them */
} costing;

static int64_t slice_of(const nn_net *net, int64_t samples, int parts)
{
    const int64_t slices = net->slices > 0 ? net->slices : parts;
    return (samples + slices - 1) / slices;
}

static costing costing_of(const nn_layer *l, const nn_split *split)
{
    const int64_t samples = l->bottom[0]->shape[0];
    const int workers = dm_workers(l->net->session), *parts = split->parts;
    return (costing){.l = l,
                     .split = split,
                     .blobs = nn_deal_out(samples, slice_of(l->net, samples, workers), workers),
                     .samples = nn_deal_out(samples, slice_of(l->net, samples, parts[0]), parts[0]),
                     .outputs = nn_deal_out(outputs_of(l), nn_split_range(l, split), parts[1])};
}

/* Where worker i's rows begin; those of i + 1 begin where they end. */
static int64_t start_of(const nn_deal *d, int64_t i)
{
    const int64_t at = i * d->each * d->size;
    return at < d->count ? at : d->count;
}

/* Rows that worker i of one deal and worker k of the other have both. */
static double both_have(const nn_deal *a, int64_t i, const nn_deal *b, int64_t k)
{
    const int64_t low[2] = {start_of(a, i), start_of(b, k)}, high[2] = {start_of(a, i + 1), start_of(b, k + 1)};
    const int64_t from = low[0] > low[1] ? low[0] : low[1], to = high[0] < high[1] ? high[0] : high[1];
    return to > from ? (double)(to - from) : 0;
}

/* Elements of a sample of the bottom that outputs first to end - 1 depend on. */
static double read_by(const nn_layer *l, int64_t first, int64_t end)
{
    const int64_t groups = nn_split_groups(l), group = outputs_of(l) / groups;
    const int64_t touched = end > first ? (end - 1) / group - first / group + 1 : 0;
    return (double)l->bottom[0]->count / (double)l->bottom[0]->shape[0] * (double)touched / (double)groups;
}

/* Elements of a sample: that part q of the outputs depends on; of these outputs; of its ranges' gradients by
 * the bottom. */
typedef struct flow {
    double in, out, back;
} flow;

static flow flow_of(const costing *c, int64_t q)
{
    const nn_deal *y = &c->outputs;
    const int64_t first = start_of(y, q), end = start_of(y, q + 1);
    const nn_blob *top = c->l->top[0];
    flow f = {.in = read_by(c->l, first, end),
              .out = (double)(end - first) / (double)y->count * (double)top->count / (double)top->shape[0]};
    for (int64_t at = first; at < end; at += y->size) {
        f.back += read_by(c->l, at, at + y->size < end ? at + y->size : end);
    }
    return f;
}

/* Bytes of samples, outputs and their gradients that a worker sends: what its blobs have and others compute,
 * what it computes and others' blobs have. */
static double moved_by(const costing *c, int64_t worker, const flow *all)
{
    const int *parts = c->split->parts, back = c->l->net->phase == NN_TRAIN;
    const int64_t p = worker / parts[1], q = worker % parts[1];
    const bool member = p < parts[0];
    const flow mine = member ? flow_of(c, q) : (flow){0};
    double elements = 0;
    for (int64_t i = 0; i < parts[0]; i++) {
        const bool here = member && i == p;
        const double rows = both_have(&c->blobs, worker, &c->samples, i);
        elements += rows * (all->in - here * mine.in + back * (all->out - here * mine.out));
    }
    if (member) {
        const double away = (double)(start_of(&c->samples, p + 1) - start_of(&c->samples, p)) -
                            both_have(&c->blobs, worker, &c->samples, p);
        elements += away * (mine.out + back * c->l->down[0] * mine.back);
    }
    return elements * (double)dm_dtype_bytes(c->l->net->type);
}

static double most_moved(const costing *c)
{
    flow all = {0};
    double most = 0;
    for (int q = 0; q < c->split->parts[1]; q++) {
        const flow f = flow_of(c, q);
        all = (flow){all.in + f.in, all.out + f.out, all.back + f.back};
    }
    for (int w = 0; w < dm_workers(c->l->net->session) && c->split->form != NN_BATCH; w++) {
        const double bytes = moved_by(c, w, &all);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool takes_used(const nn_layer *l)
{
    return is(l, "Convolution") || is(l, "Deconvolution") || is(l, "InnerProduct");
}

/* May the update of a parameter be dealt out? All layers that use it take nn_param_used. */
static bool may_deal(const nn_net *net, const nn_param *p)
{
    bool may = net->phase == NN_TRAIN && p->rounds && (!p->range || p->parts[0] > 1) && p->lr_mult != 0 &&
               dm_workers(net->session) > 1;
    for (int k = 0; may && k < net->layer_count; k++) {
        for (int i = 0; i < net->layers[k].params; i++) {
            may = may && (net->layers[k].param[i] != p || takes_used(&net->layers[k]));
        }
    }
    return may;
}

/* Weights of `parts[1]` parts have copies on `parts[0]` workers each: each slice's gradient goes to who adds up
 * a segment, the sum, or the weights, to the others. */
static nn_split_cost update_cost(const costing *c, bool dealt)
{
    const nn_layer *l = c->l;
    const nn_param *w = l->param[0];
    const int64_t copies = c->split->parts[0], column = start_of(&c->outputs, 1);
    const int64_t rows =
        c->split->form == NN_BATCH ? w->shape[0] : c->outputs.size; /* dealt out to the copies */
    const double real = (double)dm_dtype_bytes(DM_F32),
                 sum = dealt ? (double)dm_dtype_bytes(l->net->type) : real,
                 wire = (double)dm_dtype_bytes(l->net->wire ? l->net->wire : DM_F32);
    const double part = (double)column / (double)c->outputs.count * (double)w->count;
    const double updated = dealt ? part * (double)((rows + copies - 1) / copies) / (double)rows : part;
    nn_split_cost cost = {0};
    if (l->net->phase == NN_TRAIN) {
        cost.bytes = (c->samples.each * wire + sum) * part * (double)(copies - 1) / (double)copies;
        cost.seconds = cost.bytes / l->net->speed.link + UPDATE_PASSES * updated * real / l->net->speed.memory;
    }
    return cost;
}

static bool will_deal(const nn_net *net, const nn_param *p)
{
    return net->update == DM_UPDATE_DEALT || (net->update == DM_UPDATE_DEFAULT && p->count > NN_MOST_FLAT);
}

bool nn_update_deals(const nn_net *net, const nn_param *p)
{
    return will_deal(net, p) && may_deal(net, p);
}

nn_split_cost nn_update_estimate(const nn_layer *l, bool dealt)
{
    const costing c = costing_of(l, &l->split);
    return update_cost(&c, dealt);
}

nn_split_cost nn_split_estimate(const nn_layer *l, const nn_split *split)
{
    const costing c = costing_of(l, split);
    const int back = l->net->phase == NN_TRAIN;
    const double moved = most_moved(&c);
    const double share = (double)start_of(&c.samples, 1) / (double)c.samples.count *
                         (double)start_of(&c.outputs, 1) / (double)c.outputs.count;
    nn_split_cost cost = update_cost(&c, split->parts[0] > 1 && will_deal(l->net, l->param[0]));
    /* Transfers of the bottom, of the outputs and of their gradients; sums travel beside other work. */
    if (split->form != NN_BATCH) {
        cost.seconds += (2 + back * (1 + l->down[0])) * l->net->speed.wait;
    }
    cost.bytes += moved;
    cost.seconds += moved / l->net->speed.link +
                    (1 + back + back * l->down[0]) * share * nn_layer_flops(l) / l->net->speed.flops;
    return cost;
}

/* Is no part of it empty? */
static bool is_full(const nn_layer *l, const nn_split *split)
{
    const costing c = costing_of(l, split);
    return c.samples.holders == split->parts[0] && c.outputs.holders == split->parts[1];
}

static nn_split best_grid(const nn_layer *l, bool two)
{
    const int workers = dm_workers(l->net->session), least = two ? 2 : 1;
    nn_split best = {NN_BOTH, {1, 1}};
    double seconds = INFINITY;
    for (int q = least; q <= workers / least; q++) {
        bool enough = false;
        for (int p = workers / q; p >= least && !enough; p--) {
            const nn_split split = {NN_BOTH, {p, q}};
            if (is_full(l, &split) && (two || p == 1 || q == 1)) {
                const double takes = nn_split_estimate(l, &split).seconds;
                best = takes < seconds ? split : best;
                seconds = takes < seconds ? takes : seconds;
                enough = l->net->slices == 0; /* any number of parts is full: the most */
            }
        }
    }
    return best;
}

nn_split nn_split_best(const nn_layer *l, nn_form form)
{
    const int workers = dm_workers(l->net->session);
    nn_split split = {form, {form == NN_BATCH ? workers : 1, form == NN_BATCH ? 1 : workers}};
    if (form == NN_BATCH) {
        return split;
    }
    if (form == NN_FEATURES) {
        split.parts[1] = costing_of(l, &split).outputs.holders;
        return split;
    }
    split = best_grid(l, true);
    return split.parts[0] > 1 ? split : best_grid(l, false);
}

/* --- what is asked for */
static const char *const form_names[] = {"batch", "features", "both"};

static int form_of(const char *word, size_t length)
{
    int form = NN_COUNT(form_names) - 1;
    while (form >= 0 && !(strlen(form_names[form]) == length && strncmp(word, form_names[form], length) == 0)) {
        form--;
    }
    return form;
}

/* What `asked` says of a layer: its form, or -1: nothing. *seen: one more if it says something. */
static int find(const char *asked, const char *layer, int *seen)
{
    int found = -1;
    for (const char *at = asked; at && *at;) {
        size_t n = strcspn(at, ","), name = strlen(layer);
        if (n > name && strncmp(at, layer, name) == 0 && at[name] == '=') {
            *seen += found < 0;
            found = form_of(at + name + 1, n - name - 1);
        }
        at += n + (at[n] == ',');
    }
    return found;
}

/* Each word is LAYER=FORM, or `measured`. */
static dm_status check(const char *asked, int *count, bool *measured)
{
    static const char word[] = "measured";
    for (const char *at = asked; at && *at;) {
        size_t n = strcspn(at, ","), k = n;
        const bool rates = n == sizeof word - 1 && strncmp(at, word, n) == 0;
        *measured = *measured || rates;
        *count += !rates;
        while (k > 0 && at[k - 1] != '=') {
            k--;
        }
        if (!rates && (k < 2 || form_of(at + k, n - k) < 0)) {
            return dm_error_set(DM_ERR_ARG,
                                "split: '%.*s' is not LAYER=batch, LAYER=features, LAYER=both or measured",
                                (int)n, at);
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

/* A layer that nobody names: cut where it is large, and then split as is fastest. */
static nn_split fastest(const nn_layer *l)
{
    nn_split best = nn_split_best(l, NN_BATCH);
    for (nn_form form = NN_FEATURES; form <= NN_BOTH && l->net->phase == NN_TRAIN; form++) {
        const nn_split split = nn_split_best(l, form);
        const bool other = form != NN_BOTH || (split.parts[0] > 1 && split.parts[1] > 1);
        best =
            other && nn_split_estimate(l, &split).seconds < nn_split_estimate(l, &best).seconds ? split : best;
    }
    return best;
}

/* Weights of a deconvolution have the outputs of a group in the last dim, and the inputs of all groups in the
 * first. */
nn_part nn_split_weights(const nn_layer *l, int64_t first, int64_t count)
{
    const int64_t inputs = l->bottom[0]->shape[1], outputs = outputs_of(l);
    if (!is(l, "Deconvolution")) {
        return (nn_part){0, first, count};
    }
    return nn_split_groups(l) == 1 ? (nn_part){3, first, count}
                                   : (nn_part){0, first * inputs / outputs, count * inputs / outputs};
}

/* Workers hold their ranges of the layer's own parameters. */
static void place(nn_layer *l)
{
    const int64_t range = nn_split_range(l, &l->split);
    for (int i = 0; i < l->params; i++) {
        nn_param *p = l->param[i];
        if (p->owner != l) {
            continue;
        }
        const nn_part part = i == 0 ? nn_split_weights(l, 0, range) : (nn_part){0, 0, range};
        p->range = part.count;
        p->range_dim = part.dim;
        memcpy(p->parts, l->split.parts, sizeof p->parts);
    }
}

/* A layer that uses the weights of another is split as that one is. */
static dm_status choose(nn_layer *l, const char *asked, int *seen, const nn_net *share, bool apart)
{
    const nn_net *net = l->net;
    const bool shares = l->param[0]->owner != l;
    const nn_layer *other = shares ? l->param[0]->owner : other_of(share, l->name);
    int wish = l->pair > 0 ? -1 : find(asked, l->name, seen); /* others of its name follow the first */
    bool cut = false;
    if (nn_inner_by_rows(l) || nn_conv_is_nd(l)) {
        l->split = nn_split_best(l, NN_BATCH);
        return wish > NN_BATCH
                   ? dm_error_set(DM_ERR_UNSUPPORTED, "split: layer '%s' %s: it can be split by batch alone",
                                  l->name,
                                  nn_conv_is_nd(l) ? "reads no images by axis 1"
                                                   : "has transposed weights or an axis that is not 1")
                   : DM_OK;
    }
    if (wish >= 0 && shares) {
        return dm_error_set(DM_ERR_ARG, "split: layer '%s' uses the weights of '%s': name that one", l->name,
                            other->name);
    }
    l->split = nn_split_best(l, NN_BATCH);
    if (other) {
        cut = other->ranges > 0 && other->type == l->type;
        if (cut) {
            l->split = apart && !shares ? nn_split_best(l, other->split.form) : other->split;
        }
        l->split_asked = other->split_asked;
    } else if (wish >= 0 || nn_split_is_large(l)) {
        cut = true;
        l->split = wish >= 0 ? nn_split_best(l, (nn_form)wish) : fastest(l);
        l->split_asked = wish >= 0;
    }
    if (cut && (l->split.form != NN_BATCH || net->slices > 0)) {
        l->ranges = nn_deal_out(outputs_of(l), nn_split_range(l, &l->split), 1).ranges;
    }
    if (l->split.form != NN_BATCH) {
        place(l);
    }
    return DM_OK;
}

static dm_status measure(nn_net *net)
{
    nn_speed *s = &net->speed;
    dm_status status = nn_speed_measure(net, s);
    if (status == DM_OK) {
        nn_log(net,
               "split: measured %.3g GB/s between workers and %.3g us a transfer, %.3g GB/s of memory and %.3g "
               "Gflop/s a worker",
               s->link / 1e9, s->wait * 1e6, s->memory / 1e9, s->flops / 1e9);
    }
    return status;
}

dm_status nn_split_choose(nn_net *net, const char *asked, const nn_net *share, bool apart)
{
    int words = 0, seen = 0;
    bool measured = false;
    dm_status status = check(asked, &words, &measured);
    net->speed = share ? share->speed : usual;
    if (status == DM_OK && measured && !share && dm_workers(net->session) > 1) {
        status = measure(net);
    }
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        if (cuts(&net->layers[i])) {
            status = choose(&net->layers[i], asked, &seen, share, apart);
        }
    }
    return status == DM_OK && seen < words
               ? dm_error_set(
                     DM_ERR_ARG,
                     "split: '%s' names a layer that is no InnerProduct, Convolution or Deconvolution of the "
                     "net, or one twice",
                     asked)
               : status;
}
