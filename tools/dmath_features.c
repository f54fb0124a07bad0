/* dmath extract and classify: what a trained net makes of data and of images. */
#include "dmath.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct features_options {
    tool_common common;
    tool_net_state state;
    const char *model, *weights, *blobs, *prefix, *mean, *labels, *images[1000];
    int64_t iterations, slices, top;
    double scale;
    int image_count;
    bool shuffle, skip_damaged;
} features_options;

enum {
    KEY_SLICES = 256,
    KEY_MEAN,
    KEY_SCALE,
    KEY_LABELS,
    KEY_TOP,
    KEY_SHUFFLE,
    KEY_DAMAGED,
    MOST_CLASSES = 100000
};

static const struct argp_option extract_options[] = {
    {"model", 'm', "FILE", 0, "the net's prototxt (needed)", 0},
    {"weights", 'W', "FILES", 0, "its weights: .caffemodel files, with commas between them", 0},
    {"blob", 'b', "A,B", 0, "the blobs (needed)", 0},
    {"out", 'o', "PREFIX", 0, "files are PREFIX + blob + .npy (default: no prefix)", 0},
    {"iterations", 'n', "N", 0, "batches (default 1)", 0},
    {"slices", KEY_SLICES, "N", 0, "slices of a batch (default 4); 0: one a worker", 0},
    {"shuffle", KEY_SHUFFLE, NULL, 0, "in the phase TRAIN: records in another order in each round", 0},
    {"damaged", KEY_DAMAGED, "WHAT", 0, "records: refuse (default) or skip", 0},
    {0},
};
static const struct argp_option classify_options[] = {
    {"model", 'm', "FILE", 0, "the net's prototxt, with an Input layer for images (needed)", 0},
    {"weights", 'W', "FILES", 0, "its weights: .caffemodel files, with commas between them (needed)", 0},
    {"blob", 'b', "NAME", 0, "the blob with a number for each class (default: the net's first output)", 0},
    {"mean", KEY_MEAN, "MEAN", 0,
     "taken from each channel: numbers as 104,117,123, or a mean file, whose means are used", 0},
    {"scale", KEY_SCALE, "X", 0, "by which elements are multiplied then (default 1)", 0},
    {"labels", KEY_LABELS, "FILE", 0, "names of classes, one a line", 0},
    {"top", KEY_TOP, "N", 0, "so many classes of each image (default 5)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    features_options *o = state->input;
    bool fits = true;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        state->child_inputs[1] = &o->state;
        return 0;
    case 'm':
        o->model = arg;
        break;
    case 'W':
        o->weights = arg;
        break;
    case 'b':
        o->blobs = arg;
        break;
    case 'o':
        o->prefix = arg;
        break;
    case 'n':
        fits = tool_int_parse(arg, 1, INT32_MAX, &o->iterations);
        break;
    case KEY_SLICES:
        fits = tool_int_parse(arg, 0, 4096, &o->slices);
        break;
    case KEY_MEAN:
        o->mean = arg;
        break;
    case KEY_SCALE:
        fits = tool_double_parse(arg, &o->scale);
        break;
    case KEY_LABELS:
        o->labels = arg;
        break;
    case KEY_TOP:
        fits = tool_int_parse(arg, 1, MOST_CLASSES, &o->top);
        break;
    case KEY_SHUFFLE:
        o->shuffle = true;
        break;
    case KEY_DAMAGED:
        o->skip_damaged = strcmp(arg, "skip") == 0;
        fits = o->skip_damaged || strcmp(arg, "refuse") == 0;
        break;
    case ARGP_KEY_ARG:
        if (o->image_count == DMI_COUNT(o->images)) {
            argp_error(state, "there are more than %d images", DMI_COUNT(o->images));
        }
        o->images[o->image_count++] = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (!fits) {
        tool_refuse(state, key, arg, "is not understood");
    }
    return 0;
}

static const struct argp_child children[] = {
    {&tool_common_argp, 0, NULL, 0}, {&tool_net_state_argp, 0, NULL, 0}, {0}};

static dm_status extract(dm_net *net, const features_options *o);

static int run(const features_options *o, dm_status (*what)(dm_net *, const features_options *))
{
    dm_net_options settings = DM_NET_OPTIONS_INIT;
    dm_session *s = NULL;
    dm_net *net = NULL;
    tool_net_state_take(&o->state, &settings);
    settings.slices = (int)o->slices;
    settings.log = tool_net_log;
    settings.log_context = (void *)&o->common;
    settings.shuffle = o->shuffle;
    settings.skip_damaged = o->skip_damaged;
    dm_status status = tool_open(&o->common, 0, &s);
    status = status == DM_OK ? dm_net_open(s, o->model, &settings, &net) : status;
    status = status == DM_OK && o->weights ? tool_net_load(net, o->weights, false, NULL) : status;
    if (status == DM_OK && what == extract) {
        tool_net_say_unwritten(net, o->weights, tool_net_log, (void *)&o->common);
    }
    status = status == DM_OK ? what(net, o) : status;
    tool_complain(status); /* before the calls that end the net */
    dm_status end = dm_net_close(net);
    int ended = tool_close(s, end);
    return status == DM_OK ? ended : TOOL_FAILED;
}

/* --- extract */
bool tool_npy_head(FILE *to, int ndim, const int64_t *shape)
{
    char text[512] = "";
    size_t n = (size_t)snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int d = 0; d < ndim; d++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%lld,", (long long)shape[d]);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    while ((10 + n + 1) % 64 != 0) {
        text[n++] = ' ';
    }
    text[n++] = '\n';
    const unsigned char head[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(n & 255), (unsigned char)(n >> 8)};
    return fwrite(head, 1, sizeof head, to) == sizeof head && fwrite(text, 1, n, to) == n;
}

typedef struct extracted {
    char name[256], path[4096];
    FILE *file;
    int64_t count;
    float *elements;
} extracted;

static dm_status open_blob(dm_net *net, const features_options *o, extracted *e)
{
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    dm_status status = dm_net_shape(net, e->name, &ndim, shape);
    if (status != DM_OK) {
        return status;
    }
    if (ndim == 0) {
        ndim = 1;
        shape[0] = 1;
    }
    e->count = 1;
    for (int d = 0; d < ndim; d++) {
        e->count *= shape[d];
    }
    shape[0] *= o->iterations;
    snprintf(e->path, sizeof e->path, "%s%s.npy", o->prefix, e->name);
    for (char *at = e->path + strlen(o->prefix); *at; at++) {
        *at = *at == '/' ? '_' : *at;
    }
    e->elements = malloc((size_t)e->count * sizeof *e->elements);
    e->file = fopen(e->path, "wbe");
    if (!e->elements || !e->file || !tool_npy_head(e->file, ndim, shape)) {
        return dm_error_set(DM_ERR_IO, "%s: cannot be written", e->path);
    }
    return DM_OK;
}

static dm_status close_blob(extracted *e, dm_status status)
{
    if (e->file && fclose(e->file) != 0 && status == DM_OK) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be written", e->path);
    }
    if (status != DM_OK && e->file) {
        remove(e->path);
    } else if (e->file) {
        printf("%s\n", e->path);
    }
    free(e->elements);
    return status;
}

static bool one_name(const char *entry, int at, void *into)
{
    extracted *e = into;
    return snprintf(e[at].name, sizeof e->name, "%s", entry) < (int)sizeof e->name;
}

static dm_status extract(dm_net *net, const features_options *o)
{
    int count = 0;
    extracted *blobs = calloc(TOOL_LIST, sizeof *blobs);
    if (!blobs || !tool_list_parse(o->blobs, one_name, blobs, &count)) {
        free(blobs);
        return dm_error_set(DM_ERR_ARG, "--blob takes names with commas between them, not '%s'", o->blobs);
    }
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < count; i++) {
        status = open_blob(net, o, &blobs[i]);
    }
    for (int64_t n = 0; status == DM_OK && n < o->iterations; n++) {
        status = dm_net_forward(net, NULL);
        for (int i = 0; status == DM_OK && i < count; i++) {
            extracted *e = &blobs[i];
            status = dm_net_read(net, e->name, e->elements);
            if (status == DM_OK &&
                fwrite(e->elements, sizeof(float), (size_t)e->count, e->file) != (size_t)e->count) {
                status = dm_error_set(DM_ERR_IO, "%s: cannot be written", e->path);
            }
        }
    }
    for (int i = 0; i < count; i++) {
        status = close_blob(&blobs[i], status);
    }
    free(blobs);
    return status;
}

int tool_extract(int argc, char **argv)
{
    static const struct argp argp = {
        extract_options,
        parse,
        NULL,
        "Writes blobs of a net over some batches to .npy files, in Caffe's order of dims.",
        children,
        NULL,
        NULL};
    features_options o = {.iterations = 1, .slices = DM_SLICES, .prefix = ""};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    if (o.common.json) {
        return tool_no_json(argv[0]);
    }
    if (!o.model || !o.blobs || o.image_count) {
        fprintf(stderr, "%s: needs --model and --blob, and takes nothing else but options\n", argv[0]);
        return TOOL_USAGE;
    }
    return run(&o, extract);
}

/* --- classify */
typedef struct labels {
    char *line[MOST_CLASSES];
    int count;
} labels;

static dm_status read_labels(const char *path, labels *out)
{
    FILE *f = fopen(path, "re");
    size_t room = 0;
    if (!f) {
        return dm_error_set(DM_ERR_IO, "%s: cannot be read", path);
    }
    while (out->count < MOST_CLASSES && getline(&out->line[out->count], &room, f) >= 0) {
        out->line[out->count][strcspn(out->line[out->count], "\r\n")] = 0;
        out->count++;
        room = 0;
    }
    if (out->count < MOST_CLASSES) { /* the end of the file gets a line too */
        free(out->line[out->count]);
        out->line[out->count] = NULL;
    }
    fclose(f);
    return DM_OK;
}

static bool one_mean(const char *entry, int at, void *into)
{
    double *means = into;
    return tool_double_parse(entry, &means[at]);
}

static dm_status read_means(const features_options *o, int64_t channels, double *means)
{
    double all[(int)TOOL_LIST + (int)DM_MAX_CHANNEL_MEANS] = {0};
    int count = 0;
    int64_t n = 1;
    if (o->mean && tool_list_parse(o->mean, one_mean, all, &count)) {
        n = count;
    } else if (o->mean) {
        dm_status status = dm_data_mean_read(o->mean, all, &n);
        if (status != DM_OK) {
            return status;
        }
    }
    if (n != 1 && n != channels) {
        return dm_error_set(DM_ERR_ARG, "--mean has %lld channels, images have %lld", (long long)n,
                            (long long)channels);
    }
    for (int64_t c = 0; c < channels; c++) {
        means[c] = all[n == 1 ? 0 : c];
    }
    return DM_OK;
}

/* An image as the net takes it. */
static dm_status load_image(const features_options *o, const char *path, const int64_t *shape,
                            const double *means, float *to)
{
    unsigned char *bytes = NULL;
    int64_t size[3], plane = shape[2] * shape[3];
    dm_status status = dm_image_read(path, shape[1] == 3, shape[2], shape[3], &bytes, size);
    for (int64_t i = 0; status == DM_OK && i < shape[1] * plane; i++) {
        to[i] = (float)((bytes[i] - means[i / plane]) * o->scale);
    }
    free(bytes);
    return status;
}

static void put_class(const features_options *o, const char *path, int64_t rank, int64_t best, double value,
                      const char *name)
{
    tool_table t = {.json = true, .command = "classify"};
    if (!o->common.json) {
        printf("  %.4f  %lld%s%s\n", value, (long long)best, name ? "  " : "", name ? name : "");
        return;
    }
    tool_row_begin(&t);
    tool_row_text(&t, "image", 0, path);
    tool_row_int(&t, "rank", 0, rank);
    tool_row_int(&t, "class", 0, best);
    tool_row_real(&t, "value", 0, 4, value);
    if (name) {
        tool_row_text(&t, "label", 0, name);
    }
    tool_row_end(&t);
}

static void print_best(const features_options *o, const char *path, const labels *names, float *x,
                       int64_t classes)
{
    if (!o->common.json) {
        printf("%s\n", path);
    }
    for (int64_t k = 0; k < o->top && k < classes; k++) {
        int64_t best = -1;
        for (int64_t c = 0; c < classes; c++) {
            best = x[c] == x[c] && (best < 0 || x[c] > x[best]) ? c : best;
        }
        if (best < 0) {
            break;
        }
        put_class(o, path, k + 1, best, (double)x[best], best < names->count ? names->line[best] : NULL);
        x[best] = NAN; /* not again */
    }
}

typedef struct classifier {
    const char *input, *output;
    int64_t shape[DM_MAX_DIMS], image, classes;
    double means[4];
    float *in, *out;
} classifier;

static dm_status find_ends(dm_net *net, const features_options *o, classifier *c)
{
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    dm_layer_info info = {.size = sizeof info};
    for (int i = 0; !c->input && i < dm_net_layers(net); i++) {
        dm_status status = dm_net_layer(net, i, &info);
        if (status != DM_OK) {
            return status;
        }
        c->input = strcmp(info.type, "Input") == 0 ? dm_net_top(net, i, 0) : NULL;
    }
    dm_status status = c->input ? dm_net_shape(net, c->input, &ndim, c->shape) : DM_OK;
    if (!c->input || ndim != 4 || (c->shape[1] != 1 && c->shape[1] != 3)) {
        return dm_error_set(DM_ERR_SHAPE,
                            "%s: a net that classifies has an Input layer for images of 1 or 3 channels",
                            o->model);
    }
    c->output = o->blobs;
    status = c->output ? status : dm_net_output(net, 0, &c->output, NULL, NULL);
    status = status == DM_OK ? dm_net_shape(net, c->output, &ndim, shape) : status;
    c->classes = 1;
    for (int d = 1; status == DM_OK && d < ndim; d++) {
        c->classes *= shape[d];
    }
    if (status == DM_OK && (ndim < 2 || shape[0] != c->shape[0])) {
        status =
            dm_error_set(DM_ERR_SHAPE, "'%s' does not have a row for each image: name another blob", c->output);
    }
    c->image = c->shape[1] * c->shape[2] * c->shape[3];
    return status == DM_OK ? read_means(o, c->shape[1], c->means) : status;
}

static dm_status classify_batch(dm_net *net, const features_options *o, classifier *c, const labels *names,
                                int first)
{
    int count = (int)DMI_MIN(c->shape[0], o->image_count - first);
    dm_status status = DM_OK;
    memset(c->in, 0, (size_t)(c->shape[0] * c->image) * sizeof *c->in);
    for (int i = 0; status == DM_OK && i < count; i++) {
        status = load_image(o, o->images[first + i], c->shape, c->means, c->in + i * c->image);
    }
    status = status == DM_OK ? dm_net_write(net, c->input, c->in) : status;
    status = status == DM_OK ? dm_net_forward(net, NULL) : status;
    status = status == DM_OK ? dm_net_read(net, c->output, c->out) : status;
    for (int i = 0; status == DM_OK && i < count; i++) {
        print_best(o, o->images[first + i], names, c->out + i * c->classes, c->classes);
    }
    return status;
}

static dm_status classify(dm_net *net, const features_options *o)
{
    classifier c = {0};
    labels *names = calloc(1, sizeof *names);
    dm_status status = names ? find_ends(net, o, &c) : dm_error_no_memory("names", sizeof *names);
    status = status == DM_OK && o->labels ? read_labels(o->labels, names) : status;
    if (status == DM_OK) {
        c.in = malloc((size_t)(c.shape[0] * c.image) * sizeof *c.in);
        c.out = malloc((size_t)(c.shape[0] * c.classes) * sizeof *c.out);
        status = c.in && c.out
                     ? DM_OK
                     : dm_error_no_memory("images and scores",
                                          (size_t)(c.shape[0] * (c.image + c.classes)) * sizeof *c.in);
    }
    for (int i = 0; status == DM_OK && i < o->image_count; i += (int)c.shape[0]) {
        status = classify_batch(net, o, &c, names, i);
    }
    for (int i = 0; names && i < names->count; i++) {
        free(names->line[i]);
    }
    free(names);
    free(c.in);
    free(c.out);
    return status;
}

int tool_classify(int argc, char **argv)
{
    static const struct argp argp = {
        classify_options,
        parse,
        "IMAGE...",
        "Prints the classes of JPEG and PNG images by a trained net: each image is brought to the "
        "net's size, less a mean, times a scale.",
        children,
        NULL,
        NULL};
    features_options o = {.slices = DM_SLICES, .scale = 1, .top = 5};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    if (!o.model || !o.weights || o.image_count == 0) {
        fprintf(stderr, "%s: needs --model, --weights and at least one image\n", argv[0]);
        return TOOL_USAGE;
    }
    return run(&o, classify);
}
