/* dmath test, time and net: nets outside of training. */
#include "dmath.h"

#include <dmath/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct net_options {
    tool_common common;
    const char *model, *weights, *stages;
    int64_t iterations, slices, level;
    dm_dtype type;
    bool train; /* the phase */
} net_options;

enum { KEY_PHASE = 256, KEY_SLICES, KEY_LEVEL, KEY_STAGE, KEY_TYPE };

static const struct argp_option options[] = {
    {"model", 'm', "FILE", 0, "the net's prototxt (needed)", 0},
    {"weights", 'W', "FILE", 0, "its weights, a .caffemodel", 0},
    {"iterations", 'n', "N", 0, "batches (default 50)", 0},
    {"phase", KEY_PHASE, "PHASE", 0, "TEST or TRAIN (default: TEST; of time: TRAIN)", 0},
    {"level", KEY_LEVEL, "N", 0, "level of the net's state", 0},
    {"stage", KEY_STAGE, "A,B", 0, "stages of the net's state", 0},
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

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};

/* The means of the outputs over some batches. */
static dm_status test_net(dm_net *net, const net_options *o)
{
    double total = 0, loss = 0, sums[TOOL_LIST] = {0};
    int outputs = (int)DMI_MIN(dm_net_outputs(net), TOOL_LIST);
    dm_status status = DM_OK;
    for (int64_t i = 0; status == DM_OK && i < o->iterations; i++) {
        status = dm_net_forward(net, &loss);
        total += loss;
        for (int k = 0; status == DM_OK && k < outputs; k++) {
            const char *name = NULL;
            double value = 0;
            status = dm_net_output(net, k, &name, NULL, &value);
            sums[k] += value;
            if (status == DM_OK) {
                printf("Batch %lld, %s = %g\n", (long long)i, name, value);
            }
        }
    }
    if (status == DM_OK) {
        printf("Loss: %g\n", total / (double)o->iterations);
    }
    for (int k = 0; status == DM_OK && k < outputs; k++) {
        const char *name = NULL;
        double weight = 0, mean = sums[k] / (double)o->iterations;
        status = dm_net_output(net, k, &name, &weight, NULL);
        if (status == DM_OK && weight != 0) {
            printf("%s = %g (* %g = %g loss)\n", name, mean, weight, weight * mean);
        } else if (status == DM_OK) {
            printf("%s = %g\n", name, mean);
        }
    }
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

static dm_status time_net(dm_net *net, const net_options *o)
{
    char *text = NULL;
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
    net_options o = {.iterations = 50, .slices = DM_SLICES, .type = DM_F32, .train = train};
    dm_net_options settings = DM_NET_OPTIONS_INIT;
    dm_session *s = NULL;
    dm_net *net = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    settings.phase = o.train ? DM_PHASE_TRAIN : DM_PHASE_TEST;
    settings.level = (int)o.level;
    settings.stages = o.stages;
    settings.slices = (int)o.slices;
    settings.type = o.type;
    settings.log = tool_net_log;
    dm_status status = tool_open(&o.common, 0, &s);
    status = status == DM_OK ? dm_net_open(s, o.model, &settings, &net) : status;
    status = status == DM_OK && o.weights ? dm_net_load(net, o.weights) : status;
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
                "HDF5 (.h5, weights alone), else binary (.caffemodel).\n",
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
                                            {"upgrade", net_convert, "an old net in today's form"},
                                            {"convert", net_convert, "nets and weights: text, binary, HDF5"},
                                            {NULL, NULL, NULL}};
    return tool_dispatch("dmath net", commands, argc, argv);
}
