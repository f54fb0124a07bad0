/* dmath test, time and net: nets outside of training. */
#include "dmath.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct net_options {
    tool_common common;
    tool_net_state state;
    const char *model, *weights;
    int64_t iterations, slices;
    dm_dtype type;
} net_options;

enum { KEY_PHASE = 256, KEY_LEVEL, KEY_STAGE, KEY_SLICES, KEY_TYPE };

/* --- the state of a net */
static const struct argp_option state_options[] = {
    {"phase", KEY_PHASE, "PHASE", 0, "TEST or TRAIN (default: TEST; of time: TRAIN)", 0},
    {"level", KEY_LEVEL, "N", 0, "level of the net's state", 0},
    {"stage", KEY_STAGE, "A,B", 0, "stages of the net's state", 0},
    {0},
};

static error_t parse_state(int key, char *arg, struct argp_state *state)
{
    tool_net_state *o = state->input;
    bool fits = true;
    switch (key) {
    case KEY_PHASE:
        o->train = strcmp(arg, "TRAIN") == 0;
        fits = o->train || strcmp(arg, "TEST") == 0;
        break;
    case KEY_LEVEL:
        fits = tool_int_parse(arg, 0, INT32_MAX, &o->level);
        break;
    case KEY_STAGE:
        o->stages = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (!fits) {
        tool_refuse(state, key, arg, "is not understood");
    }
    return 0;
}

const struct argp tool_net_state_argp = {state_options, parse_state, NULL, NULL, NULL, NULL, NULL};

void tool_net_state_take(const tool_net_state *state, dm_net_options *options)
{
    options->phase = state->train ? DM_PHASE_TRAIN : DM_PHASE_TEST;
    options->level = (int)state->level;
    options->stages = state->stages;
}

/* --- test, time, show */

static const struct argp_option options[] = {
    {"model", 'm', "FILE", 0, "the net's prototxt (needed)", 0},
    {"weights", 'W', "FILES", 0, "its weights: .caffemodel files, with commas between them", 0},
    {"iterations", 'n', "N", 0, "batches (default 50)", 0},
    {"slices", KEY_SLICES, "N", 0, "slices of a batch (default 4); 0: one a worker", 0},
    {"type", KEY_TYPE, "TYPE", 0, "f32 (default), f16 or bf16: between layers, and of weights in products", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    net_options *o = state->input;
    bool fits = true;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        state->child_inputs[1] = &o->state;
        break;
    case 'm':
        o->model = arg;
        break;
    case 'W':
        o->weights = arg;
        break;
    case 'n':
        fits = tool_int_parse(arg, 1, INT32_MAX, &o->iterations);
        break;
    case KEY_SLICES:
        fits = tool_int_parse(arg, 0, 4096, &o->slices);
        break;
    case KEY_TYPE:
        fits = dmi_dtype_parse(arg, &o->type) && dmi_dtype_is_float(o->type) && dmi_dtype_bytes(o->type) <= 4 &&
               dmi_dtype_bytes(o->type) >= 2;
        break;
    case ARGP_KEY_ARG:
        fits = false;
        break;
    case ARGP_KEY_END:
        if (!o->model) {
            argp_error(state, "which net? --model FILE");
        }
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

dm_status tool_net_load(dm_net *net, const char *files, bool say, FILE *to)
{
    dm_status status = DM_OK;
    char path[4096];
    for (const char *at = files; status == DM_OK && at;) {
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof path) {
            return dm_error_set(
                DM_ERR_ARG,
                "--weights: `%s' is not a list of files with commas between them, each of at most "
                "%d bytes",
                files, (int)sizeof path - 1);
        }
        snprintf(path, sizeof path, "%.*s", (int)n, at);
        if (say) {
            fprintf(to, "Finetuning from %s\n", path);
            fflush(to);
        }
        status = dm_net_load(net, path);
        at = at[n] ? at + n + 1 : NULL;
    }
    return status;
}

void tool_net_say_unwritten(const dm_net *net, const char *weights, dm_log_function log, void *context)
{
    int params = 0;
    for (int i = 0; i < dm_net_layers(net); i++) {
        dm_layer_info info = {.size = sizeof info};
        char line[512];
        if (dm_net_layer(net, i, &info) != DM_OK) {
            break;
        }
        params += info.params;
        if (strcmp(info.type, "Input") == 0 || strcmp(info.type, "MemoryData") == 0) {
            snprintf(line, sizeof line, "layer '%s' makes zeros: only programs write what %s layers hold",
                     info.name, info.type);
            log(context, line);
        }
    }
    if (!weights && params > 0) {
        log(context, "no --weights: parameters have their first values");
    }
}

/* An output of the net: its elements of one batch, and their sums over all. */
typedef struct net_output {
    const char *name;
    double weight;
    int64_t count;
    float *now;
    double *sums;
} net_output;

/* A line, or an object, of each element: of one batch, or of them all. */
static void put_output(const net_options *o, int64_t batch, const net_output *out, int64_t element,
                       double value)
{
    tool_table t = {.json = true, .command = "test"};
    if (o->common.json) {
        tool_row_begin(&t);
        tool_row_text(&t, "kind", 0, batch < 0 ? "mean" : "batch");
        if (batch >= 0) {
            tool_row_int(&t, "batch", 0, batch);
        }
        tool_row_text(&t, "output", 0, out->name);
        tool_row_int(&t, "element", 0, element);
        tool_row_real(&t, "value", 0, 6, value);
        tool_row_real(&t, "weight", 0, 6, out->weight);
        tool_row_end(&t);
    } else if (batch >= 0) {
        printf("Batch %lld, %s = %g\n", (long long)batch, out->name, value);
    } else if (out->weight != 0) {
        printf("%s = %g (* %g = %g loss)\n", out->name, value, out->weight, out->weight * value);
    } else {
        printf("%s = %g\n", out->name, value);
    }
}

static dm_status open_output(dm_net *net, int k, net_output *out)
{
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    dm_status status = dm_net_output(net, k, &out->name, &out->weight, NULL);
    status = status == DM_OK ? dm_net_shape(net, out->name, &ndim, shape) : status;
    out->count = 1;
    for (int d = 0; status == DM_OK && d < ndim; d++) {
        out->count *= shape[d];
    }
    if (status == DM_OK) {
        out->now = calloc((size_t)out->count, sizeof *out->now);
        out->sums = calloc((size_t)out->count, sizeof *out->sums);
    }
    return status != DM_OK || (out->now && out->sums)
               ? status
               : dm_error_no_memory("the elements of an output",
                                    (size_t)out->count * (sizeof *out->now + sizeof *out->sums));
}

static dm_status test_batches(dm_net *net, const net_options *o, net_output *outputs, int count)
{
    double total = 0, loss = 0;
    dm_status status = DM_OK;
    for (int k = 0; status == DM_OK && k < count; k++) {
        status = open_output(net, k, &outputs[k]);
    }
    for (int64_t i = 0; status == DM_OK && i < o->iterations; i++) {
        status = dm_net_forward(net, &loss);
        total += loss;
        for (int k = 0; status == DM_OK && k < count; k++) {
            net_output *out = &outputs[k];
            status = dm_net_read(net, out->name, out->now);
            for (int64_t e = 0; status == DM_OK && e < out->count; e++) {
                out->sums[e] += (double)out->now[e];
                put_output(o, i, out, e, (double)out->now[e]);
            }
        }
    }
    if (status == DM_OK && o->common.json) {
        put_output(o, -1, &(net_output){.name = "loss of the net", .weight = 1}, 0,
                   total / (double)o->iterations);
    } else if (status == DM_OK) {
        printf("Loss: %g\n", total / (double)o->iterations);
    }
    for (int k = 0; status == DM_OK && k < count; k++) {
        for (int64_t e = 0; e < outputs[k].count; e++) {
            put_output(o, -1, &outputs[k], e, outputs[k].sums[e] / (double)o->iterations);
        }
    }
    return status;
}

/* The means of the outputs over some batches. */
static dm_status test_net(dm_net *net, const net_options *o)
{
    const int count = dm_net_outputs(net);
    net_output *outputs = calloc((size_t)count + 1, sizeof *outputs);
    dm_status status = outputs
                           ? test_batches(net, o, outputs, count)
                           : dm_error_no_memory("the outputs of a net", ((size_t)count + 1) * sizeof *outputs);
    for (int k = 0; outputs && k < count; k++) {
        free(outputs[k].now);
        free(outputs[k].sums);
    }
    free(outputs);
    return status;
}

static dm_status print_and_free(dm_status status, char *text)
{
    if (status == DM_OK) {
        fputs(text, stdout);
        free(text);
    }
    return status;
}

static dm_status time_json(dm_net *net, int64_t passes)
{
    const size_t bytes = ((size_t)dm_net_layers(net) + 1) * sizeof(double);
    double *forward = calloc(1, bytes), *backward = calloc(1, bytes);
    tool_table t = {.json = true, .command = "time"};
    dm_status status = forward && backward ? dm_net_measure(net, (int)passes, forward, backward)
                                           : dm_error_no_memory("the times of layers", 2 * bytes);
    for (int i = 0; status == DM_OK && i < dm_net_layers(net); i++) {
        dm_layer_info info = {.size = sizeof info};
        status = dm_net_layer(net, i, &info);
        if (status == DM_OK) {
            tool_row_begin(&t);
            tool_row_text(&t, "layer", 0, info.name);
            tool_row_text(&t, "type", 0, info.type);
            tool_row_real(&t, "forward_ms", 0, 3, forward[i]);
            tool_row_real(&t, "backward_ms", 0, 3, backward[i]);
            tool_row_int(&t, "passes", 0, passes);
            tool_row_end(&t);
        }
    }
    free(forward);
    free(backward);
    return status;
}

static dm_status time_net(dm_net *net, const net_options *o)
{
    char *text = NULL;
    if (o->common.json) {
        return time_json(net, o->iterations);
    }
    dm_status status = dm_net_time(net, (int)o->iterations, &text);
    return print_and_free(status, text);
}

static dm_status show_net(dm_net *net, const net_options *o)
{
    char *text = NULL;
    (void)o;
    dm_status status = dm_net_show(net, &text);
    return print_and_free(status, text);
}

static int run(int argc, char **argv, const char *doc, bool train,
               dm_status (*what)(dm_net *, const net_options *))
{
    const struct argp argp = {options, parse, NULL, doc, children, NULL, NULL};
    net_options o = {.iterations = 50, .slices = DM_SLICES, .type = DM_F32, .state = {.train = train}};
    dm_net_options settings = DM_NET_OPTIONS_INIT;
    dm_session *s = NULL;
    dm_net *net = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    if (o.common.json && what == show_net) {
        return tool_no_json(argv[0]);
    }
    tool_net_state_take(&o.state, &settings);
    settings.slices = (int)o.slices;
    settings.type = o.type;
    settings.log = tool_net_log;
    settings.log_context = &o.common;
    dm_status status = tool_open(&o.common, 0, &s);
    status = status == DM_OK ? dm_net_open(s, o.model, &settings, &net) : status;
    status = status == DM_OK && o.weights ? tool_net_load(net, o.weights, false, NULL) : status;
    if (status == DM_OK && what == test_net) {
        tool_net_say_unwritten(net, o.weights, tool_net_log, &o.common);
    }
    status = status == DM_OK ? what(net, &o) : status;
    tool_complain(status); /* before the calls that end the net */
    dm_status end = dm_net_close(net);
    int ended = tool_close(s, end);
    return status == DM_OK ? ended : TOOL_FAILED;
}

int tool_test(int argc, char **argv)
{
    return run(argc, argv, "The means of a net's outputs over some batches.", false, test_net);
}

int tool_time(int argc, char **argv)
{
    return run(argc, argv, "Milliseconds of each layer of a net.", true, time_net);
}

static int net_show(int argc, char **argv)
{
    return run(argc, argv, "The layers of a net with their blobs, shapes and parameters.", false, show_net);
}

static int net_print(int argc, char **argv)
{
    char *text = NULL;
    const char *type = argc > 2 ? argv[2] : "NetParameter";
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        fprintf(stderr,
                "Usage: %s FILE [NetParameter|SolverParameter]\nPrints a prototxt file as dmath reads it.\n",
                argv[0]);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : TOOL_USAGE;
    }
    dm_status status = dm_prototxt_print(argv[1], type, &text);
    tool_complain(status);
    return print_and_free(status, text) == DM_OK ? 0 : TOOL_FAILED;
}

static int net_convert(int argc, char **argv)
{
    if (argc != 3 || argv[1][0] == '-') {
        fprintf(stderr,
                "Usage: %s FROM TO\nA net or its weights in another file, old nets in today's form: text "
                "(.prototxt, .txt),\n"
                "HDF5 (.h5, weights alone), else binary (.caffemodel). A solver's settings, text to text: "
                "solver_type as type.\n",
                argv[0]);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : TOOL_USAGE;
    }
    dm_status status = dm_net_convert(argv[1], argv[2]);
    tool_complain(status);
    return status == DM_OK ? 0 : TOOL_FAILED;
}

static int net_draw(int argc, char **argv)
{
    char *text = NULL;
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr,
                "Usage: %s FILE\nThe graph of a net for Graphviz: `%s net.prototxt | dot -Tsvg > net.svg'.\n",
                argv[0], argv[0]);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : TOOL_USAGE;
    }
    dm_status status = dm_net_draw(argv[1], &text);
    tool_complain(status);
    return print_and_free(status, text) == DM_OK ? 0 : TOOL_FAILED;
}

int tool_net(int argc, char **argv)
{
    static const tool_command commands[] = {{"show", net_show, "layers, blobs, shapes, parameters"},
                                            {"print", net_print, "a prototxt file as dmath reads it"},
                                            {"draw", net_draw, "the graph of a net, for Graphviz"},
                                            {"upgrade", net_convert, "an old net or solver in today's form"},
                                            {"convert", net_convert, "nets and weights: text, binary, HDF5"},
                                            {NULL, NULL, NULL}};
    return tool_dispatch("dmath net", commands, argc, argv);
}
