/* dmath train: Caffe's solvers, as their files are. */
#include "dmath_train_log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct train_options {
    tool_common common;
    const char *solver, *weights, *snapshot, *log, *report, *split, *store_folder, *stages;
    int64_t slices, max_iter, store_mib, level;
    dm_dtype type;
    int effect[2]; /* of SIGINT, SIGHUP: DM_SOLVER_* */
    int read;      /* DM_READ_* */
    int64_t test_workers;
    int update; /* DM_UPDATE_* */
    dm_dtype wire;
    bool shuffle, skip_damaged, explain, lean;
} train_options;

enum {
    KEY_SLICES = 256,
    KEY_MAX_ITER,
    KEY_SIGINT,
    KEY_SIGHUP,
    KEY_TYPE,
    KEY_LOG,
    KEY_REPORT,
    KEY_SHUFFLE,
    KEY_DAMAGED,
    KEY_EXPLAIN,
    KEY_SPLIT,
    KEY_LEAN,
    KEY_STORE,
    KEY_STORE_FOLDER,
    KEY_READ,
    KEY_TEST_WORKERS,
    KEY_UPDATE,
    KEY_WIRE,
    KEY_LEVEL,
    KEY_STAGE
};

static const struct argp_option options[] = {
    {"solver", 's', "FILE", 0, "the solver's prototxt (needed)", 0},
    {"weights", 'W', "FILES", 0,
     "begin with the weights of .caffemodel files, with commas between them, where layers have the same names",
     0},
    {"snapshot", 'S', "FILE", 0, "go on from a .solverstate", 0},
    {"slices", KEY_SLICES, "N", 0,
     "slices of a batch (default 4): the same bits on any number of workers; 0: one a worker, the fastest", 0},
    {"type", KEY_TYPE, "TYPE", 0,
     "f32 (default), f16 or bf16: between layers, and of weights in products; weights themselves stay f32", 0},
    {"split", KEY_SPLIT, "LAYERS", 0,
     "how workers share inner products and convolutions: LAYER=batch, LAYER=features or LAYER=both, with "
     "commas between (default: large ones by estimated time)",
     0},
    {"update", KEY_UPDATE, "WAY", 0,
     "weights of convolutions and inner products: whole, on each worker, or dealt, some rows on each (default: "
     "dealt if large)",
     0},
    {"wire", KEY_WIRE, "TYPE", 0,
     "gradients of weights between workers: f32 (default), or bf16, half the bytes: rounded once, before they "
     "are added",
     0},
    {"level", KEY_LEVEL, "N", 0, "level of the training net's state, instead of the file's", 0},
    {"stage", KEY_STAGE, "A,B", 0, "stages of the training net's state, beside the file's", 0},
    {"max-iter", KEY_MAX_ITER, "N", 0, "instead of the file's max_iter", 0},
    {"test-workers", KEY_TEST_WORKERS, "N", 0,
     "so many workers, the last, run the tests beside the training of the others (default 0: all train, then "
     "test)",
     0},
    {"explain", KEY_EXPLAIN, NULL, 0,
     "what each layer will send, compute and hold, from its plans, and estimates of its time; trains nothing",
     0},
    {"lean", KEY_LEAN, NULL, 0, "less memory: what lies between layers shares it where a step allows", 0},
    {"log", KEY_LOG, "FILE", 0, "losses, rates, tests and snapshots, a JSON object a line", 0},
    {"report", KEY_REPORT, "FILE", 0,
     "after training, an HTML file: curves, time of each layer, memory, link bytes, confusion matrix, filters",
     0},
    {"shuffle", KEY_SHUFFLE, NULL, 0, "records of the training net in another order in each round", 0},
    {"read", KEY_READ, "WHO", 0,
     "who reads records: workers, each its own (default where they are processes and have the files), or "
     "master",
     0},
    {"damaged", KEY_DAMAGED, "WHAT", 0, "records: refuse (default) or skip", 0},
    {"store", KEY_STORE, "MIB", 0, "decoded images that each data layer keeps for later rounds (default 0)", 0},
    {"store-folder", KEY_STORE_FOLDER, "FOLDER", 0, "keep them in a file there, on a local disk, not in memory",
     0},
    {"sigint-effect", KEY_SIGINT, "WHAT", 0, "stop (default), snapshot or none", 0},
    {"sighup-effect", KEY_SIGHUP, "WHAT", 0, "snapshot (default), stop or none", 0},
    {0},
};

static bool parse_effect(const char *text, int *out)
{
    static const char *const names[] = {"none", "stop", "snapshot"}; /* in the order of DM_SOLVER_* */
    for (int i = 0; i < DMI_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    train_options *o = state->input;
    bool fits = true;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        break;
    case 's':
        o->solver = arg;
        break;
    case 'W':
        o->weights = arg;
        break;
    case 'S':
        o->snapshot = arg;
        break;
    case KEY_SLICES:
        fits = tool_int_parse(arg, 0, 4096, &o->slices);
        break;
    case KEY_TYPE:
        fits = dmi_dtype_parse(arg, &o->type) && dmi_dtype_is_float(o->type) && dmi_dtype_bytes(o->type) <= 4 &&
               dmi_dtype_bytes(o->type) >= 2;
        break;
    case KEY_MAX_ITER:
        fits = tool_int_parse(arg, 0, INT32_MAX, &o->max_iter);
        break;
    case KEY_LEVEL:
        fits = tool_int_parse(arg, 0, INT32_MAX, &o->level);
        break;
    case KEY_STAGE:
        o->stages = arg;
        break;
    case KEY_TEST_WORKERS:
        fits = tool_int_parse(arg, 0, INT32_MAX, &o->test_workers);
        break;
    case KEY_UPDATE:
        fits = strcmp(arg, "whole") == 0 || strcmp(arg, "dealt") == 0;
        o->update = strcmp(arg, "whole") == 0 ? DM_UPDATE_WHOLE : DM_UPDATE_DEALT;
        break;
    case KEY_WIRE:
        fits = strcmp(arg, "f32") == 0 || strcmp(arg, "bf16") == 0;
        o->wire = strcmp(arg, "bf16") == 0 ? DM_BF16 : (dm_dtype)0;
        break;
    case KEY_SPLIT:
        o->split = arg;
        break;
    case KEY_LOG:
        o->log = arg;
        break;
    case KEY_REPORT:
        o->report = arg;
        break;
    case KEY_EXPLAIN:
        o->explain = true;
        break;
    case KEY_STORE:
        fits = tool_int_parse(arg, 0, INT64_C(1) << 30, &o->store_mib);
        break;
    case KEY_STORE_FOLDER:
        o->store_folder = arg;
        break;
    case KEY_READ:
        fits = strcmp(arg, "workers") == 0 || strcmp(arg, "master") == 0;
        o->read = strcmp(arg, "workers") == 0 ? DM_READ_BY_WORKERS : DM_READ_BY_PROGRAM;
        break;
    case KEY_LEAN:
        o->lean = true;
        break;
    case KEY_SHUFFLE:
        o->shuffle = true;
        break;
    case KEY_DAMAGED:
        o->skip_damaged = strcmp(arg, "skip") == 0;
        fits = o->skip_damaged || strcmp(arg, "refuse") == 0;
        break;
    case KEY_SIGINT:
    case KEY_SIGHUP:
        fits = parse_effect(arg, &o->effect[key == KEY_SIGHUP]);
        break;
    case ARGP_KEY_ARG:
        fits = false;
        break;
    case ARGP_KEY_END:
        if (!o->solver || (o->weights && o->snapshot)) {
            argp_error(state, o->solver ? "--weights and --snapshot: only one of the two"
                                        : "which solver? --solver FILE");
        }
        if (o->store_folder && o->store_mib == 0) {
            argp_error(state, "--store-folder: needs --store, which says how much is kept");
        }
        if (o->explain && o->common.json) {
            argp_error(state, "--json: --explain has no lines of JSON");
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
static const struct argp argp = {
    options,  parse,
    NULL,     "Trains a net: Caffe's solver and net files, unmodified, in process or under mpirun.",
    children, NULL,
    NULL};

void tool_net_log(void *context, const char *line)
{
    const tool_common *common = context;
    FILE *to = common && common->json ? stderr : stdout;
    fprintf(to, "%s\n", line);
    fflush(to);
}

/* Numbers of signals that came since they were last asked for. */
static volatile sig_atomic_t interrupts, hangups;

static void on_signal(int number)
{
    if (number == SIGINT) {
        interrupts = 1;
    } else {
        hangups = 1;
    }
}

static int ask(void *context)
{
    const train_options *o = context;
    if (interrupts) {
        interrupts = 0;
        return o->effect[0];
    }
    if (hangups) {
        hangups = 0;
        return o->effect[1];
    }
    return DM_SOLVER_GO_ON;
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGHUP};
    for (int i = 0; i < 2; i++) {
        struct sigaction action = {0};
        action.sa_handler = on_signal; /* of `none' too: without it the signal ends the program */
        action.sa_flags = SA_RESTART;
        sigaction(numbers[i], &action, NULL);
    }
}

/* The training net; and the test nets, where they have workers of their own. */
static dm_status explain(dm_solver *solver, bool apart)
{
    dm_status status = DM_OK;
    dm_net *net = dm_solver_net(solver);
    for (int i = 0; status == DM_OK && net; i++) {
        char *text = NULL;
        status = dm_net_explain_at(net, 0, 0, &text);
        if (status == DM_OK) {
            fputs(text, stdout);
            free(text);
        }
        net = apart ? dm_solver_test_net(solver, i) : NULL;
        if (status == DM_OK && net) {
            printf("\nTest net #%d, on workers of its own:\n", i);
        }
    }
    return status;
}

static void say_unwritten(dm_solver *solver, tool_train_log *log)
{
    const dm_net *net = dm_solver_net(solver);
    for (int i = 0; net; i++) {
        tool_net_say_unwritten(net, "fillers", tool_train_line, log);
        net = dm_solver_test_net(solver, i);
    }
}

/* Into the training net, and into the test nets for the layers that they alone have. */
static dm_status load(dm_solver *solver, const char *files, FILE *lines)
{
    dm_status status = tool_net_load(dm_solver_net(solver), files, true, lines);
    dm_net *net;
    for (int i = 0; status == DM_OK && (net = dm_solver_test_net(solver, i)); i++) {
        status = tool_net_load(net, files, false, lines);
    }
    return status;
}

static dm_status run(dm_session *s, train_options *o, tool_train_log *log)
{
    dm_solver_options settings = DM_SOLVER_OPTIONS_INIT;
    dm_solver *solver = NULL;
    settings.slices = (int)o->slices;
    settings.type = o->type;
    settings.max_iter = o->max_iter;
    settings.log = tool_train_line;
    settings.log_context = log;
    settings.event = tool_train_event;
    settings.event_context = log;
    settings.shuffle = o->shuffle;
    settings.split = o->split;
    settings.skip_damaged = o->skip_damaged;
    settings.store_bytes = o->store_mib * (1 << 20);
    settings.store_folder = o->store_folder;
    settings.read = o->read;
    settings.lean = o->lean;
    settings.test_workers = (int)o->test_workers;
    settings.update = o->update;
    settings.wire = o->wire;
    settings.stages = o->stages;
    settings.level = (int)o->level;
    dm_status status = dm_solver_open(s, o->solver, &settings, &solver);
    if (status == DM_OK && o->explain) {
        status = explain(solver, o->test_workers > 0);
        tool_complain(status);
        dm_status end = tool_train_log_close(log, dm_solver_close(solver));
        return status == DM_OK ? end : status;
    }
    if (status == DM_OK && o->weights) {
        status = load(solver, o->weights, log->lines);
    }
    if (status == DM_OK && o->snapshot) {
        status = dm_solver_restore(solver, o->snapshot);
    }
    if (status == DM_OK) {
        say_unwritten(solver, log);
        catch_signals();
        status = dm_solver_run(solver, ask, o);
    }
    if (status == DM_OK && o->report) {
        snprintf(log->title, sizeof log->title, "%s", o->solver);
        status = tool_report_write(o->report, s, solver, log);
    }
    status = tool_train_log_close(log, status);
    tool_complain(status); /* before the calls that end the solver */
    dm_status end = dm_solver_close(solver);
    tool_complain(end);
    return status == DM_OK ? end : status;
}

int tool_train(int argc, char **argv)
{
    train_options o = {.slices = DM_SLICES,
                       .type = DM_F32,
                       .max_iter = -1,
                       .level = -1,
                       .effect = {DM_SOLVER_STOP, DM_SOLVER_SNAPSHOT}};
    dm_session *s = NULL;
    tool_train_log log;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    tool_default_option(&o.common, "program_device", "auto"); /* nothing else here uses the GPUs */
    dm_status status = tool_open(&o.common, 0, &s);
    if (status != DM_OK) {
        return tool_close(s, status);
    }
    FILE *lines = o.common.json ? stderr : stdout;
    if (o.test_workers > 0 && o.test_workers < dm_workers(s)) {
        const int training = dm_workers(s) - (int)o.test_workers;
        fprintf(lines, "Training on %d worker%s, tests on %d other%s\n", training, training == 1 ? "" : "s",
                (int)o.test_workers, o.test_workers == 1 ? "" : "s");
    } else {
        fprintf(lines, "Training on %d worker%s\n", dm_workers(s), dm_workers(s) == 1 ? "" : "s");
    }
    status = tool_train_log_open(&log, o.explain ? NULL : o.log, o.common.json, o.report != NULL);
    dm_status report =
        o.report && status == DM_OK ? tool_report_try(o.report) : DM_OK; /* better now than later */
    if (status == DM_OK && report == DM_OK) {
        status = run(s, &o, &log);
    } else {
        tool_complain(status != DM_OK ? status : report);
        status = status != DM_OK ? status : tool_train_log_close(&log, report);
    }
    int ended = tool_close(s, DM_OK);
    return status == DM_OK ? ended : TOOL_FAILED;
}
