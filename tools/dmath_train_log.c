/* Events of a training as lines of JSON and as curves. */
#include "dmath_train_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- lines of JSON */
static void put_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c < 32) {
            fprintf(to, "\\u%04x", c);
        } else {
            fputc(c, to);
        }
    }
    fputc('"', to);
}

/* JSON has no numbers for what is not finite. */
static void put_real(FILE *to, const char *key, double x)
{
    if (isfinite(x)) {
        fprintf(to, ",\"%s\":%.9g", key, x);
    } else {
        fprintf(to, ",\"%s\":\"%s\"", key, x != x ? "nan" : x > 0 ? "inf" : "-inf");
    }
}

static void put_event(FILE *to, const dm_train_event *e)
{
    static const char *const kinds[] = {"train", "output", "testing", "test", "snapshot", NULL, "end"};
    if (e->kind < 0 || e->kind >= DMI_COUNT(kinds) || !kinds[e->kind]) {
        return;
    }
    fprintf(to, "{\"kind\":\"%s\",\"iteration\":%lld,\"seconds\":%.6f", kinds[e->kind], (long long)e->iteration,
            e->seconds);
    if (e->kind == DM_TRAIN_DISPLAY) {
        put_real(to, "loss", e->loss);
        put_real(to, "rate", e->rate);
    }
    if (e->kind == DM_TRAIN_TEST || e->kind == DM_TRAIN_TESTED) {
        fprintf(to, ",\"net\":%d", e->test);
    }
    if (e->name) {
        fputs(",\"name\":", to);
        put_text(to, e->name);
    }
    if (e->kind == DM_TRAIN_OUTPUT || e->kind == DM_TRAIN_TESTED) {
        fprintf(to, ",\"element\":%lld", (long long)e->element);
        put_real(to, "value", e->value);
        put_real(to, "weight", e->weight);
    }
    fputs("}\n", to);
}

static void put_json(tool_train_log *log, const dm_train_event *e)
{
    if (log->json) {
        put_event(log->json, e);
        log->failed = log->failed || fflush(log->json) != 0;
    }
    if (log->lines == stderr) {
        put_event(stdout, e);
        fflush(stdout);
    }
}

/* --- curves */
static void add_point(tool_train_log *log, const char *name, double x, double y)
{
    tool_curve *c = NULL;
    for (int i = 0; i < log->curves; i++) {
        c = strcmp(log->curve[i].name, name) == 0 ? &log->curve[i] : c;
    }
    if (!c && log->curves < TOOL_CURVES) {
        c = &log->curve[log->curves++];
        snprintf(c->name, sizeof c->name, "%s", name);
    }
    if (c && c->count == c->room) {
        int64_t room = c->room ? 2 * c->room : 256;
        double *xs = realloc(c->x, (size_t)room * sizeof *xs);
        c->x = xs ? xs : c->x;
        double *ys = xs ? realloc(c->y, (size_t)room * sizeof *ys) : NULL;
        c->y = ys ? ys : c->y;
        c->room = ys ? room : c->room;
    }
    if (c && c->count < c->room) {
        c->x[c->count] = x;
        c->y[c->count++] = y;
    }
}

static void keep(tool_train_log *log, const dm_train_event *e)
{
    char name[128];
    double x = (double)e->iteration;
    if (e->kind == DM_TRAIN_DISPLAY) {
        add_point(log, "loss", x, e->loss);
        add_point(log, "learning rate", x, e->rate);
    } else if (e->kind == DM_TRAIN_TESTED && e->element == 0) {
        snprintf(name, sizeof name, "test net %d: %.80s", e->test, e->name);
        add_point(log, name, x, e->value);
    }
}

/* --- how far it is, on a terminal */
static void show_progress(const dm_train_event *e)
{
    char what[96];
    if (e->kind == DM_TRAIN_STEP) {
        snprintf(what, sizeof what, "%lld of %lld iterations, %.0f s", (long long)e->iteration,
                 (long long)e->end, e->seconds);
        tool_progress(what, DMI_MIN(e->iteration, e->end), e->end);
    }
}

void tool_train_line(void *context, const char *line)
{
    const tool_train_log *log = context;
    tool_progress(NULL, 0, 0);
    fprintf(log->lines, "%s\n", line);
    fflush(log->lines);
}

void tool_train_event(void *context, const dm_train_event *e)
{
    tool_train_log *log = context;
    log->seconds = e->seconds;
    log->iteration = e->iteration;
    put_json(log, e);
    if (log->keep) {
        keep(log, e);
    }
    show_progress(e);
}

dm_status tool_train_log_open(tool_train_log *log, const char *json, bool shown, bool keep_curves)
{
    memset(log, 0, sizeof *log);
    log->path = json;
    log->lines = shown ? stderr : stdout;
    log->keep = keep_curves;
    if (json && !(log->json = fopen(json, "we"))) {
        return dm_error_set(DM_ERR_IO, "%s: cannot be written", json);
    }
    return DM_OK;
}

dm_status tool_train_log_close(tool_train_log *log, dm_status status)
{
    tool_progress(NULL, 0, 0);
    bool well = !log->json || (fclose(log->json) == 0 && !log->failed);
    if (status == DM_OK && !well) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be written", log->path);
    }
    for (int i = 0; i < log->curves; i++) {
        free(log->curve[i].x);
        free(log->curve[i].y);
    }
    return status;
}
