/* What a run of dmath train leaves behind: lines of JSON, a report. */
#ifndef DMATH_TRAIN_LOG_H
#define DMATH_TRAIN_LOG_H

#include "dmath.h"

/* Points of a curve: loss, rate, or an output of a net. */
typedef struct tool_curve {
    char name[128];
    int64_t count, room;
    double *x, *y;
} tool_curve;

enum { TOOL_CURVES = 64 };
typedef struct tool_train_log {
    FILE *json;        /* NULL: none */
    FILE *lines;       /* of text: stdout, or stderr where the events go to stdout */
    const char *path;  /* of it */
    bool keep, failed; /* keep: curves for a report */
    char title[256];
    tool_curve curve[TOOL_CURVES];
    int curves;
    double seconds; /* of the last event */
    int64_t iteration;
} tool_train_log;

/* DM_ERR_IO. json: path of the file, or NULL; shown: the events to stdout too. */
dm_status tool_train_log_open(tool_train_log *log, const char *json, bool shown, bool keep);
dm_status tool_train_log_close(tool_train_log *log, dm_status status);
/* Of dm_solver_options: log_context and event_context are the tool_train_log. */
void tool_train_line(void *context, const char *line);
void tool_train_event(void *context, const dm_train_event *event);

/* --- dmath_report.c: one HTML file. Can it be written? Leaves what is there. */
dm_status tool_report_try(const char *path);
/* Runs some passes through the nets. */
dm_status tool_report_write(const char *path, dm_session *session, dm_solver *solver,
                            const tool_train_log *log);

#endif
