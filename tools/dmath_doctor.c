/* dmath doctor: can jobs run well here, and if not, what is to be done? */
#include "dmath_doctor.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *const level_names[] = {"ok", "note", "problem"};

void doctor_say(doctor *d, enum doctor_level level, const char *what, const char *remedy, const char *format,
                ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->found[level]++;
    if (d->json) {
        tool_table t = {.json = true, .command = "doctor"};
        tool_row_begin(&t);
        tool_row_text(&t, "check", 0, what);
        tool_row_text(&t, "level", 0, level_names[level]);
        tool_row_text(&t, "found", 0, text);
        tool_row_text(&t, "do", 0, remedy ? remedy : "");
        tool_row_end(&t);
        return;
    }
    printf("%-8s %-10s %s\n", level_names[level], what, text);
    if (remedy && level != DOCTOR_OK) {
        printf("%-19s -> %s\n", "", remedy);
    }
    fflush(stdout);
}

/* --- the command --- */

typedef struct doctor_options {
    tool_common common;
    bool quick;
} doctor_options;

enum { KEY_QUICK = 256, LONGEST_S = 120 };

static const struct argp_option options[] = {
    {"quick", KEY_QUICK, NULL, 0, "no measurements, and no job under mpirun", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    doctor_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        return 0;
    case KEY_QUICK:
        o->quick = true;
        return 0;
    case ARGP_KEY_END:
        if (o->common.nworkers > 1) {
            argp_error(state, "--workers: one number, not a list");
            return EINVAL;
        }
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "`%s' is one argument too many", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options,
    parse,
    NULL,
    "Looks at what jobs need of this host: versions, cores, memory, limits, the launcher, GPUs, a "
    "session. Each finding is ok, a note, or a problem, with what to do. The exit status is 1 if "
    "there is a problem. Takes some seconds, and two minutes at most.",
    children,
    NULL,
    NULL};

/* A sum on workers of this process. */
static void try_session(doctor *d, const doctor_options *o)
{
    dm_session *s = NULL;
    dm_array x, sum;
    double got = 0;
    dm_status status = tool_open(&o->common, 0, &s);
    int workers = status == DM_OK ? dm_workers(s) : 0;
    status = status == DM_OK ? dm_vector(s, DM_F64, 100000, &x) : status;
    status = status == DM_OK ? dm_vector(s, DM_F64, 1, &sum) : status;
    status = status == DM_OK ? dm_fill_arange(s, x, 1, 1) : status;
    status = status == DM_OK ? dm_sum_dim(s, x, 0, sum) : status;
    status = status == DM_OK ? dm_item(s, sum, (int64_t[]){0}, &got) : status;
    if (status == DM_OK && got == 100000.0 * 100001 / 2) {
        doctor_say(d, DOCTOR_OK, "session", NULL, "%d workers of this process compute", workers);
    } else {
        doctor_say(d, DOCTOR_PROBLEM, "session",
                   "the message says what is missing; -O device=cpu does without GPUs",
                   "workers of this process: %s", status == DM_OK ? "a wrong sum" : dm_error_message());
    }
    int64_t alive;
    if (s && dm_finalize(s, &alive) != DM_OK) {
        doctor_say(d, DOCTOR_PROBLEM, "session", NULL, "its end: %s", dm_error_message());
    }
}

static void too_long(int number)
{
    static const char text[] =
        "dmath doctor: a check did not end; the last line above is of the one before it\n";
    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(TOOL_FAILED);
}

int tool_doctor(int argc, char **argv)
{
    doctor_options o = {.quick = false};
    dmi_config config;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    dm_status status = dmi_config_load(&config, o.common.options);
    if (status != DM_OK) {
        tool_complain(status);
        return TOOL_USAGE;
    }
    config.workers = o.common.nworkers > 0 ? (int)o.common.workers[0] : config.workers;
    doctor d = {.config = &config, .json = o.common.json, .verbose = o.common.verbose};
    (void)signal(SIGALRM, too_long);
    (void)alarm(LONGEST_S);
    doctor_versions(&d);
    doctor_cores(&d);
    doctor_memory(&d);
    doctor_limits(&d);
    doctor_sharing(&d);
    doctor_gpus(&d);
    if (!o.quick) {
        doctor_launcher(&d);
        doctor_rates(&d);
    }
    if (tool_ranks() <= 1) { /* under a launcher the ranks have met already */
        try_session(&d, &o);
    }
    (void)alarm(0);
    if (!d.json) {
        printf("\n%d ok, %d notes, %d problems\n", d.found[DOCTOR_OK], d.found[DOCTOR_NOTE],
               d.found[DOCTOR_PROBLEM]);
    }
    return d.found[DOCTOR_PROBLEM] > 0 ? TOOL_FAILED : 0;
}
