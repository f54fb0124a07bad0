/* A solver: the training net, the test nets that share its weights, and the update. */
#ifndef NN_SOLVER_H
#define NN_SOLVER_H

#include "net/net.h"

typedef struct nn_test {
    nn_net *net;
    int64_t iterations; /* batches */
    dm_array *sums;     /* f64, of each output: the sum of all batches */
    dm_array *losses;   /* of each blob: [iterations], if it is a part of the loss and that is asked for */
} nn_test;

/* The test that has begun: which net is next, with which batch. */
typedef struct nn_testing {
    bool going;
    int64_t iteration; /* of the training, whose weights it has */
    int net;
    int64_t batch;
    bool late; /* a test was not over when the next one was due, and the log has said so */
} nn_testing;

typedef struct nn_rate {
    double mult, now;
    dm_array array;
} nn_rate;

typedef struct nn_rule nn_rule; /* how weights follow from gradients: update.c */

struct dm_solver {
    dm_session *session;
    nn_document *document;
    nn_document *given; /* the net that the program has made; NULL: there is none */
    nn_message *m; /* its root */
    char *prefix;  /* of snapshots */
    int slices;
    dm_dtype type, wire; /* of the training net; as of dm_solver_options */
    dm_log_function log;
    void *log_context;
    bool shuffle, skip_damaged, hdf5; /* hdf5: snapshots */
    bool debug, lean;                 /* debug_info; as of dm_solver_options */
    const char *split, *stages;       /* as of dm_solver_options, while it is opened */
    int level;                        /* so too */
    nn_own own;                       /* so too */
    const dm_layer_type *types;       /* so too */
    int type_count;
    int64_t store_bytes;
    const char *store_folder;
    int read, update;
    void (*event)(void *context, const dm_train_event *event);
    void *event_context;
    double opened; /* when, in seconds */
    nn_net *net;
    nn_test *tests;
    int test_count;
    nn_testing testing;
    int test_workers;           /* as of dm_solver_options */
    dm_group train_on, test_on; /* zero: all workers */
    int workers;                /* all of them */
    const nn_rule *rule;
    dm_array *history; /* of each parameter of the net, one or two */
    int history_count;
    dm_array *flat_history; /* of each of the net's flats, likewise */
    int flat_history_count;
    dm_array norm;      /* one number */
    dm_program program; /* a step: forward, backward, update; zero: call by call */
    nn_rate *rates;     /* a number for each lr_mult that parameters have, which the program reads */
    int rate_count;
    double rate; /* of this iteration */
    int64_t iter, max_iter, display, average_loss, iter_size, test_interval, snapshot;
    int64_t start, end; /* iterations at which this run began, and is to end */
    int64_t at;    /* iteration for which programs and data stand ready; another one than iter: it was loaded */
    char *kept;    /* the beginning of its names in the session; NULL: none */
    int64_t step;  /* of the policies step and multistep */
    double base_lr, gamma, power, momentum, weight_decay, clip;
    bool l1, test_at_start, test_loss;
    bool nan_said;  /* that the loss is no number */
    double *losses; /* of the last average_loss iterations */
    int (*ask)(void *context); /* as of dm_solver_run, while that runs; NULL: nobody is asked */
    void *ask_context;
    bool stopped; /* it has asked for the end */
    bool busy;    /* in a call that trains or restores */
    double display_time;
    int64_t display_iter;
};

void nn_solver_log(const dm_solver *solver, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Tells an event; iteration (that of the solver, or another), end and seconds are filled in. */
void nn_solver_tell(const dm_solver *solver, dm_train_event event);
void nn_solver_tell_of(const dm_solver *solver, int64_t iteration, dm_train_event event);
/* Asks the program what it wants now: makes a snapshot, or notes that it wants the end. */
dm_status nn_solver_hear(dm_solver *solver);
/* --- settings.c: fields that are no nets. path: the solver's file. */
dm_status nn_solver_settings(dm_solver *solver, const char *path);
/* Can a snapshot be written? Leaves nothing. */
dm_status nn_solver_probe(const dm_solver *solver);
/* --- nets.c */
dm_status nn_solver_nets(dm_solver *solver);
/* --- rate.c: the learning rate of this iteration. Moves the step of multistep. */
dm_status nn_solver_rate_check(const dm_solver *solver);
double nn_solver_rate(dm_solver *solver);
/* --- update.c */
dm_status nn_solver_rule(dm_solver *solver);
dm_status nn_solver_histories(dm_solver *solver);
dm_status nn_solver_update(dm_solver *solver);
/* Each parameter moves. Rates are numbers, or while a program is recorded elements of arrays. */
dm_status nn_solver_move(dm_solver *solver, double rate, double factor);
double nn_solver_rate_of(const dm_solver *solver, double rate);
/* --- step.c: records a step, if all of it can be; runs it, with the numbers of this iteration. */
dm_status nn_step_record(dm_solver *solver);
/* A step of the solver's settings as a program of the caller's; none where steps go call by call. */
dm_status nn_step_of(dm_solver *solver, dm_program *out);
dm_status nn_step_run(dm_solver *solver);
dm_status nn_step_forward(dm_solver *solver); /* a forward pass of the training net alone */
const nn_rate *nn_step_rate(const dm_solver *solver, double mult); /* NULL: none */
void nn_step_drop(dm_solver *solver);
/* --- test.c: a test with the weights of now. Where tests have workers of their own it goes on beside training:
 * its next batches are given while a step runs, until that is done. */
dm_status nn_test_make(dm_solver *solver, nn_test *test); /* what it adds up */
dm_status nn_test_begin(dm_solver *solver);               /* the one before ends first */
dm_status nn_test_beside(dm_solver *solver);
dm_status nn_test_finish(dm_solver *solver); /* waits */
void nn_test_free(dm_solver *solver, nn_test *test);
/* --- nan.c: the loss of the training net; says once where it turned NaN, and why it may have. */
dm_status nn_solver_loss(dm_solver *solver, double *loss);
/* --- snapshot.c */
dm_status nn_solver_snapshot(dm_solver *solver);
dm_status nn_solver_restore(dm_solver *solver, const char *path);
/* Programs and data for the iteration that the solver has now. */
dm_status nn_solver_continue(dm_solver *solver);
/* --- keep.c: names in the session */
void nn_solver_unkeep(dm_solver *solver);

#endif
