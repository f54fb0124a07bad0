/* What the files of the command-line tool share. Names across its files begin with tool_. */
#ifndef DMATH_TOOL_H
#define DMATH_TOOL_H

#include "launch/launch.h"

#include <argp.h>
#include <dmath/nn.h>
#include <pthread.h>
#include <stdio.h>

enum { TOOL_FAILED = 1, TOOL_USAGE = 2 }; /* exit statuses beside 0 */
enum { TOOL_LIST = 64 };                  /* most entries of a list on the command line */

/* --- dmath_options.c: what every subcommand takes */
typedef struct tool_common {
    int64_t workers[TOOL_LIST]; /* in turn; a subcommand that takes one number refuses more */
    int nworkers;               /* 0: not given */
    char options[1024];         /* for dm_config: transport and the -O options */
    bool json, verbose;
} tool_common;
extern const struct argp tool_common_argp; /* child parser; its input is a tool_common */
/* A setting of the subcommand's own, where neither the options nor the environment have it. */
void tool_default_option(tool_common *common, const char *key, const char *value);

/* The rank the launcher gave this process, 0 without one; and how many there are, 0 without one. */
int tool_rank(void);
int tool_ranks(void);

/* A layout as written on the command line, before the number of workers is known. */
typedef struct tool_layout {
    char text[48];
    enum { TOOL_DEFAULT, TOOL_SPLIT, TOOL_CYCLIC, TOOL_GRID, TOOL_REPLICATED, TOOL_SINGLE } kind;
    int dim, rows, cols, worker; /* GRID: rows 0: as square as it gets */
    int64_t block;               /* 0: chosen by the library */
} tool_layout;
#define TOOL_LAYOUTS                                                                                           \
    "rows, cols, split:DIM, cyclic:DIM:BLOCK, grid, grid:RxC[:BLOCK], replicated, single:WORKER, default"
bool tool_layout_parse(const char *text, tool_layout *out);
dm_layout tool_layout_make(const tool_layout *layout, int workers);
/* The same for an array of so many dims beside matrices: the last dim where it lacks the one that is split, and of a grid
 * the columns, a copy for each row of workers. */
dm_layout tool_layout_for(const tool_layout *layout, int workers, int ndim);

bool tool_int_parse(const char *text, int64_t least, int64_t most, int64_t *out); /* "12", "4K", "1M", "2G" */
bool tool_double_parse(const char *text, double *out);
/* A value that an option, or with ARGP_KEY_ARG an argument, does not take: "--bins: `x' is not a number". Ends the program. */
void tool_refuse(struct argp_state *state, int key, const char *value, const char *why);
/* "a,b,c": calls one() for each entry; false if one does, if an entry is empty, or if there are more than
 * TOOL_LIST */
bool tool_list_parse(const char *text, bool (*one)(const char *entry, int at, void *into), void *into,
                     int *count);
bool tool_int_entry(const char *entry, int at, void *into);    /* into: int64_t[TOOL_LIST], from 1 on */
bool tool_dtype_entry(const char *entry, int at, void *into);  /* into: dm_dtype[TOOL_LIST] */
bool tool_layout_entry(const char *entry, int at, void *into); /* into: tool_layout[TOOL_LIST] */

/* --- dmath_session.c */
/* Number of sessions that a measurement runs: one per entry of --workers, 1 without the option or under a
 * launcher. */
int tool_runs(const tool_common *common);
dm_status tool_open(const tool_common *common, int run_number, dm_session **out);
/* More than one session under a launcher, whose ranks all run this tool: it owns MPI then. Ranks other than 0 serve
 * that many sessions, and end in here; rank 0 opens as many, and then calls tool_series_end. */
dm_status tool_series_begin(const tool_common *common, int sessions);
void tool_series_end(void);
/* TOOL_USAGE, for a command that has no lines of JSON, with a message that says so. */
int tool_no_json(const char *command);
/* Ends the session; prints the failure that `status` stands for, or that of ending. 0 or TOOL_FAILED. */
int tool_close(dm_session *session, dm_status status);
void tool_complain(dm_status status);               /* to stderr, with its text; nothing for DM_OK */
/* Where a measurement ran. */
typedef struct tool_where {
    int workers, cores, blas_threads;
    char launch[16], transport[48];
} tool_where;
dm_status tool_where_of(dm_session *session, tool_where *out);

/* --- dmath_measure.c */
typedef struct tool_measure {
    int64_t repeats, warmup;
} tool_measure;
extern const struct argp tool_measure_argp; /* child parser; its input is a tool_measure */
typedef struct tool_stats {
    double min, median, max; /* seconds */
} tool_stats;
tool_stats tool_stats_of(double *seconds, int64_t count); /* sorts them; count > 0 */

/* --- dmath_table.c: a table for people, or a JSON object a line */
typedef struct tool_table {
    bool json;
    const char *command;
    const tool_where *where; /* JSON lines say it each time; may be NULL */
    char last_head[1024], head[1024], line[1024], object[4096];
} tool_table;
void tool_row_begin(tool_table *t);
void tool_row_text(tool_table *t, const char *key, int width, const char *value);
void tool_row_int(tool_table *t, const char *key, int width, int64_t value);
void tool_row_real(tool_table *t, const char *key, int width, int digits, double value);
/* With as many digits as it needs, at most six for people; NaN: none. */
void tool_row_number(tool_table *t, const char *key, int width, double value);
/* JSON only. */
void tool_row_list(tool_table *t, const char *key, const int64_t *value, int count);
/* Three columns: key_min, key_median, key_max, each value times `scale`. */
void tool_row_stats(tool_table *t, const char *key, int width, int digits, tool_stats stats, double scale);
void tool_row_end(tool_table *t);
/* A line about the machine before a table; nothing with JSON, whose lines carry it. */
void tool_table_intro(const tool_table *t);

/* --- dmath_progress.c */
/* A bar on stderr, where that is a terminal: so much of so much is done, and this comes now. NULL: it is over, the bar goes. */
void tool_progress(const char *what, int64_t done, int64_t total);
/* The same for a few steps that may last: this step comes now, whatever was shown just before. */
void tool_stage(const char *what, int done, int total);
/* A bar beside a call that reads or writes about `total` bytes, until tool_watch_end. */
typedef struct tool_watch {
    const char *what;
    int64_t total;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool runs, over;
} tool_watch;
void tool_watch_begin(tool_watch *w, const char *what, int64_t total);
void tool_watch_end(tool_watch *w);
/* The bytes of a file, or of all files of a folder; 0: there is none. */
int64_t tool_bytes_below(const char *path);

/* --- dmath_process.c */
/* Runs a program for at most so many seconds. Its exit status; -1: it could not be started, -2: it was ended
 * for the time. output: the beginning of what it wrote, stderr included. */
int tool_run_program(const char *const *argv, int seconds, char *output, size_t room);

/* --- dmath_train.c: a dm_log_function that prints lines; context: the tool_common, for with --json they go to
 * stderr */
void tool_net_log(void *context, const char *line);
/* --- dmath_net.c: options for the state of a net, a child parser; its input is a tool_net_state */
typedef struct tool_net_state {
    const char *stages;
    int64_t level;
    bool train; /* the phase */
} tool_net_state;
extern const struct argp tool_net_state_argp;
void tool_net_state_take(const tool_net_state *state, dm_net_options *options);
/* Weights of files with commas between their names, one after the other, as Caffe's --weights.
 * DM_ERR_ARG: a name is empty. say: a line for each. */
dm_status tool_net_load(dm_net *net, const char *files, bool say, FILE *to);
/* A line for each layer whose blobs programs write: here they stay 0; and (weights NULL) one that says that
 * there are none, if the net has parameters. */
void tool_net_say_unwritten(const dm_net *net, const char *weights, dm_log_function log, void *context);
/* --- dmath_features.c: the bytes of a file in front of a .npy array of f32 */
bool tool_npy_head(FILE *to, int ndim, const int64_t *shape);


/* --- subcommands; each returns the exit status */
int tool_info(int argc, char **argv);
int tool_gemm(int argc, char **argv);
int tool_map(int argc, char **argv);
int tool_replay(int argc, char **argv);
int tool_explain(int argc, char **argv);
int tool_train(int argc, char **argv);
int tool_test(int argc, char **argv);
int tool_time(int argc, char **argv);
int tool_net(int argc, char **argv);
int tool_data(int argc, char **argv);
int tool_classify(int argc, char **argv);
int tool_extract(int argc, char **argv);
int tool_ckpt(int argc, char **argv);
int tool_bench(int argc, char **argv);
/* Makes known what `dmath bench apply` runs; on all ranks, before a session starts. */
dm_status tool_ops_register(void);
int tool_doctor(int argc, char **argv);
int tool_stat(int argc, char **argv);
int tool_man(int argc, char **argv);
int tool_completion(int argc, char **argv);
int tool_bench_gemm(int argc, char **argv);
int tool_bench_dispatch(int argc, char **argv);
int tool_bench_transport(int argc, char **argv);
int tool_bench_remap(int argc, char **argv);
int tool_bench_file(int argc, char **argv);
int tool_bench_groups(int argc, char **argv);
int tool_bench_op(int argc, char **argv);
bool tool_bench_has_op(const char *name); /* an operation, or a family of them */

/* A name and what it runs; tables of them end with a NULL name. */
typedef struct tool_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *doc;
} tool_command;
/* Runs the command that argv[1] names, with argv[0] made `prefix` + " " + its name. */
int tool_dispatch(const char *prefix, const tool_command *commands, int argc, char **argv);

#endif
