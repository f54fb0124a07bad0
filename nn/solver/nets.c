/* The training net of a solver and its test nets. */
#include "solver/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char S[] = "SolverParameter";

/* The net that a program has made stands for net_param. */
static bool is_given(const dm_solver *s, const char *field)
{
    return s->given && strcmp(field, "net_param") == 0;
}

/* A net of the solver's file: a message in it, or a file that it names. */
static dm_status read_net(const dm_solver *s, const char *field, int64_t i, nn_document **out)
{
    const nn_field *f = nn_schema_by_name(S, field);
    if (f->type == NN_STRING) {
        return nn_net_read(nn_string_at(s->m, field, i), out);
    }
    const nn_document *from = is_given(s, field) ? s->given : s->document;
    nn_message *inside = is_given(s, field) ? from->root : nn_sub_at(s->m, field, i);
    dm_status status = nn_document_new("NetParameter", from->file, out);
    if (status == DM_OK) {
        (*out)->root->line = inside->line;
        status = nn_message_merge((*out)->root, inside);
        if (status != DM_OK) {
            nn_document_free(*out);
        }
    }
    return status;
}

static dm_status build(dm_solver *s, const char *field, int64_t i, int phase, const nn_message *state,
                       nn_net **out)
{
    nn_document *d = NULL;
    int64_t seed = nn_int(s->m, S, "random_seed");
    const bool apart = phase == NN_TEST && s->test_workers > 0;
    nn_net_setup setup = {.session = s->session,
                          .group = apart ? s->test_on : s->train_on,
                          .workers = s->workers,
                          .apart = apart,
                          .slices = s->slices,
                          .type = phase == NN_TEST ? DM_F32 : s->type,
                          .wire = phase == NN_TEST ? (dm_dtype)0 : s->wire,
                          .seed = seed >= 0 ? (uint64_t)seed : 1,
                          .share = phase == NN_TEST ? s->net : NULL,
                          .log = s->log,
                          .log_context = s->log_context,
                          .shuffle = s->shuffle,
                          .skip_damaged = s->skip_damaged,
                          .split = phase == NN_TEST ? NULL : s->split,
                          .debug = s->debug && !apart,
                          .lean = phase == NN_TRAIN && s->lean,
                          .own = phase == NN_TRAIN ? s->own : (nn_own){0},
                          .types = s->types,
                          .type_count = s->type_count,
                          .store_bytes = s->store_bytes,
                          .store_folder = s->store_folder,
                          .read = s->read,
                          .update = phase == NN_TRAIN ? s->update : DM_UPDATE_WHOLE};
    dm_status status = read_net(s, field, i, &d);
    if (status != DM_OK) {
        return status;
    }
    status = nn_net_state(d->root, phase, state);
    if (status != DM_OK) {
        nn_document_free(d);
        return status;
    }
    return nn_net_build(&setup, d, out);
}

/* The state of the training net as the file has it, with what the options add. */
static dm_status train_state(dm_solver *s, const nn_message **out)
{
    nn_message *state = NULL;
    dm_status status = DM_OK;
    if (s->level >= 0 || s->stages) {
        nn_entry *own = nn_entry_of(s->m, "train_state");
        state = own && own->count ? own->at.message[0] : NULL;
        status = state ? DM_OK : nn_set_message(s->m, "train_state", &state);
        status = status == DM_OK && s->level >= 0 ? nn_set_int(state, "level", s->level) : status;
        status = status == DM_OK ? nn_net_stages(state, s->stages) : status;
    }
    *out = nn_sub(s->m, "train_state");
    return status;
}

static dm_status train_net(dm_solver *s, const char **generic)
{
    const nn_message *state = NULL;
    static const char *const fields[] = {"train_net_param", "train_net", "net_param", "net"};
    const char *chosen = NULL;
    int count = 0;
    for (int i = 0; i < NN_COUNT(fields); i++) {
        int there = nn_has(s->m, fields[i]) + is_given(s, fields[i]);
        chosen = there ? fields[i] : chosen;
        count += there;
    }
    if (count != 1) {
        return nn_fail_at(s->m, s->m->line, DM_ERR_FORMAT,
                          "a solver has one of net, net_param, train_net, train_net_param, not %d", count);
    }
    *generic = strncmp(chosen, "net", 3) == 0 ? chosen : NULL;
    dm_status status = train_state(s, &state);
    status = status == DM_OK ? build(s, chosen, 0, NN_TRAIN, state, &s->net) : status;
    if (status == DM_OK) {
        s->net->solver = s;
        s->net->step = nn_step_of;
    }
    return status;
}

/* Test net i: those of test_net_param, then of test_net, then the net that serves both. */
static dm_status test_net(dm_solver *s, int64_t i, const char *generic)
{
    int64_t params = nn_count(s->m, "test_net_param"), files = nn_count(s->m, "test_net");
    const char *field = i < params ? "test_net_param" : i < params + files ? "test_net" : generic;
    int64_t at = i < params ? i : i < params + files ? i - params : 0;
    const nn_message *state = nn_count(s->m, "test_state") ? nn_sub_at(s->m, "test_state", i) : NULL;
    nn_test *t = &s->tests[i];
    t->iterations = nn_int_at(s->m, "test_iter", i);
    if (t->iterations < 1) {
        return nn_fail_at(s->m, nn_line(s->m, "test_iter"), DM_ERR_FORMAT, "test_iter must be at least 1");
    }
    dm_status status = build(s, field, at, NN_TEST, state, &t->net);
    return status == DM_OK ? nn_test_make(s, t) : status;
}

/* Into the training net, and into the test nets for the layers that they alone have. */
static dm_status load_file(dm_solver *s, const char *path)
{
    nn_solver_log(s, "Finetuning from %s", path);
    dm_status status = nn_net_load(s->net, path);
    for (int i = 0; status == DM_OK && i < s->test_count; i++) {
        nn_net *net = s->tests[i].net;
        status = nn_net_enter(net);
        status = status == DM_OK ? nn_net_leave(net, nn_net_load(net, path)) : status;
    }
    return status;
}

/* The field `weights` holds files, each value one or several with commas between them, as Caffe's does. */
static dm_status load_weights(dm_solver *s, const char *list)
{
    dm_status status = DM_OK;
    char path[4096];
    while (status == DM_OK && list) {
        size_t n = strcspn(list, ","), begin = strspn(list, " "), end = n;
        while (end > begin && list[end - 1] == ' ') {
            end--;
        }
        if (end <= begin || end - begin >= sizeof path) {
            return nn_fail_at(s->m, nn_line(s->m, "weights"), DM_ERR_FORMAT,
                              "weights takes files with commas between them, each of at most %d bytes",
                              (int)sizeof path - 1);
        }
        snprintf(path, sizeof path, "%.*s", (int)(end - begin), list + begin);
        status = load_file(s, path);
        list = list[n] ? list + n + 1 : NULL;
    }
    return status;
}

/* Without test_iter there is no test. */
static void say_no_tests(const dm_solver *s)
{
    static const char *const fields[] = {"test_interval", "test_initialization", "test_compute_loss"};
    for (int i = 0; i < NN_COUNT(fields); i++) {
        if (nn_has(s->m, fields[i]) && nn_int(s->m, S, fields[i]) != 0) {
            nn_solver_log(s, "%s:%d: %s has no effect: there is no test_iter, and so no test", s->m->file,
                          nn_line(s->m, fields[i]), fields[i]);
        }
    }
}

dm_status nn_solver_nets(dm_solver *s)
{
    const char *generic = NULL;
    dm_status status = train_net(s, &generic);
    bool diffs = nn_int(s->m, S, "snapshot_diff") != 0;
    int64_t count = nn_count(s->m, "test_iter"),
            own = nn_count(s->m, "test_net_param") + nn_count(s->m, "test_net");
    int64_t states = nn_count(s->m, "test_state");
    if (status != DM_OK) {
        return status;
    }
    if (generic ? count < own : count != own) {
        return nn_fail_at(s->m, nn_line(s->m, "test_iter"), DM_ERR_FORMAT,
                          "there are %lld values of test_iter for %lld test nets", (long long)count,
                          (long long)own);
    }
    if (states && states != count) {
        return nn_fail_at(s->m, nn_line(s->m, "test_state"), DM_ERR_FORMAT,
                          "there are %lld test_state for %lld test nets", (long long)states, (long long)count);
    }
    if (count && s->test_interval == 0) {
        return nn_fail_at(s->m, nn_line(s->m, "test_iter"), DM_ERR_FORMAT,
                          "there are test nets, but no test_interval");
    }
    if (count == 0) {
        say_no_tests(s);
    }
    if (s->test_workers > 0 && count == 0) {
        return dm_error_set(DM_ERR_ARG, "test_workers is %d, but the solver has no test nets", s->test_workers);
    }
    s->net->save_diffs = diffs;
    s->tests = calloc((size_t)count + 1, sizeof *s->tests);
    if (!s->tests) {
        return dm_error_no_memory("test nets", ((size_t)count + 1) * sizeof *s->tests);
    }
    for (int64_t i = 0; status == DM_OK && i < count; i++) {
        s->test_count++;
        status = test_net(s, i, generic);
    }
    for (int64_t i = 0; status == DM_OK && i < nn_count(s->m, "weights"); i++) {
        status = load_weights(s, nn_string_at(s->m, "weights", i));
    }
    return status;
}
