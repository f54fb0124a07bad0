/* Snapshots of a solver: the net's weights and the solver's state, and back. */
#include "solver/solver.h"

#include "data/feed.h"
#include "data/hdf5.h"
#include "proto/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dm_status write_state(dm_solver *s, const char *path, const char *weights)
{
    nn_document *d = NULL;
    dm_status status = nn_document_new("SolverState", path, &d);
    status = status == DM_OK ? nn_set_int(d->root, "iter", s->iter) : status;
    status = status == DM_OK ? nn_set_string(d->root, "learned_net", weights) : status;
    status = status == DM_OK ? nn_set_int(d->root, "current_step", s->step) : status;
    for (int i = 0; status == DM_OK && i < s->history_count; i++) {
        nn_message *blob = NULL;
        status = nn_set_message(d->root, "history", &blob);
        status = status == DM_OK ? nn_param_to_message(s->net, s->net->params[i % s->net->param_count],
                                                       s->history[i], "data", blob)
                                 : status;
    }
    status = status == DM_OK ? nn_wire_write(d->root, path) : status;
    nn_document_free(d);
    return status;
}

/* The same as HDF5: numbers, a text, and arrays history/NUMBER. */
static dm_status write_state_hdf5(dm_solver *s, const char *path, const char *weights)
{
    nn_hdf5 *f = NULL;
    dm_status status = nn_hdf5_create(path, &f);
    status = status == DM_OK ? nn_hdf5_write_int(f, "iter", s->iter) : status;
    status = status == DM_OK ? nn_hdf5_write_text(f, "learned_net", weights) : status;
    status = status == DM_OK ? nn_hdf5_write_int(f, "current_step", s->step) : status;
    for (int i = 0; status == DM_OK && i < s->history_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "history/%d", i);
        status = nn_param_to_hdf5(s->net, s->net->params[i % s->net->param_count], s->history[i], f, name);
    }
    return nn_hdf5_close(f, status);
}

dm_status nn_solver_snapshot(dm_solver *s)
{
    const char *end = s->hdf5 ? ".h5" : "", *form = s->hdf5 ? "HDF5" : "binary proto";
    size_t room = strlen(s->prefix) + 64;
    char *weights = malloc(room), *state = malloc(room);
    dm_status status = weights && state ? DM_OK : dm_error_no_memory("paths", 2 * room);
    if (status == DM_OK) {
        snprintf(weights, room, "%s_iter_%lld.caffemodel%s", s->prefix, (long long)s->iter, end);
        snprintf(state, room, "%s_iter_%lld.solverstate%s", s->prefix, (long long)s->iter, end);
        nn_solver_log(s, "Snapshotting to %s file %s", form, weights);
        status = nn_net_save(s->net, weights);
    }
    if (status == DM_OK) {
        nn_solver_log(s, "Snapshotting solver state to %s file %s", form, state);
        status = s->hdf5 ? write_state_hdf5(s, state, weights) : write_state(s, state, weights);
    }
    if (status == DM_OK) {
        nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_SNAPSHOT, .name = state});
    }
    free(weights);
    free(state);
    return status;
}

static void skip_data(nn_net *net, int64_t batches)
{
    nn_feeds_seek(net, batches);
    net->pass = batches;
}

/* How many tests there were before this iteration. */
static int64_t tests_before(const dm_solver *s)
{
    if (s->test_interval == 0 || s->iter == 0) {
        return 0;
    }
    return (s->iter + s->test_interval - 1) / s->test_interval - (s->test_at_start ? 0 : 1);
}

static dm_status read_history(dm_solver *s, const nn_message *state)
{
    int64_t count = nn_count(state, "history");
    if (count != s->history_count) {
        return nn_fail_at(state, 0, DM_ERR_SHAPE, "has %lld histories; this solver and its net have %d",
                          (long long)count, s->history_count);
    }
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < s->history_count; i++) {
        status = nn_param_from_message(s->net, s->net->params[i % s->net->param_count], s->history[i],
                                       nn_sub_at(state, "history", i));
    }
    return status;
}

/* The weights that a state names. */
static dm_status load_weights(dm_solver *s, const char *path, const char *weights)
{
    char text[1024];
    dm_status status = nn_net_load(s->net, weights);
    if (status == DM_OK) {
        return DM_OK;
    }
    snprintf(text, sizeof text, "%s", dm_error_message());
    return dm_error_set(status, "%s: names the weights '%s', which cannot be taken: %s", path, weights, text);
}

static dm_status restore_proto(dm_solver *s, const char *path)
{
    nn_document *d = NULL;
    dm_status status = nn_wire_read(path, "SolverState", &d);
    if (status == DM_OK && nn_has(d->root, "learned_net")) {
        status = load_weights(s, path, nn_string(d->root, "SolverState", "learned_net"));
    }
    status = status == DM_OK ? read_history(s, d->root) : status;
    if (status == DM_OK) {
        s->iter = nn_int(d->root, "SolverState", "iter");
        s->step = nn_int(d->root, "SolverState", "current_step");
    }
    nn_document_free(d);
    return status;
}

static dm_status restore_hdf5(dm_solver *s, const char *path)
{
    nn_hdf5 *f = NULL;
    char weights[4096], name[64];
    dm_status status = nn_hdf5_open(path, &f);
    if (status == DM_OK && nn_hdf5_has(f, "learned_net")) {
        status = nn_hdf5_read_text(f, "learned_net", weights, sizeof weights);
        status = status == DM_OK ? load_weights(s, path, weights) : status;
    }
    for (int i = 0; status == DM_OK && i < s->history_count; i++) {
        snprintf(name, sizeof name, "history/%d", i);
        status = nn_param_from_hdf5(s->net, s->net->params[i % s->net->param_count], s->history[i], f, name);
    }
    snprintf(name, sizeof name, "history/%d", s->history_count);
    if (status == DM_OK && nn_hdf5_has(f, name)) {
        status = dm_error_set(DM_ERR_SHAPE, "%s: has more histories than the %d of this solver and its net",
                              path, s->history_count);
    }
    status = status == DM_OK ? nn_hdf5_read_int(f, "iter", &s->iter) : status;
    status = status == DM_OK ? nn_hdf5_read_int(f, "current_step", &s->step) : status;
    return nn_hdf5_close(f, status);
}

dm_status nn_solver_restore(dm_solver *s, const char *path)
{
    nn_solver_log(s, "Restoring previous solver status from %s", path);
    dm_status status = nn_is_hdf5(path) ? restore_hdf5(s, path) : restore_proto(s, path);
    if (status == DM_OK && (s->iter < 0 || s->step < 0)) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: has a negative iteration or step", path);
    }
    return status == DM_OK ? nn_solver_continue(s) : status;
}

dm_status nn_solver_continue(dm_solver *s)
{
    if (s->iter < 0 || s->step < 0) {
        return dm_error_set(DM_ERR_STATE, "the iteration that was loaded, or its step, is negative");
    }
    s->start = s->at = s->iter;
    nn_step_drop(s); /* a new one begins with the right run */
    skip_data(s->net, s->iter * s->iter_size);
    for (int i = 0; i < s->test_count; i++) {
        skip_data(s->tests[i].net, tests_before(s) * s->tests[i].iterations);
    }
    return DM_OK;
}
