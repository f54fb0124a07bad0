/* What a solver's file says, but for its nets. */
#include "solver/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char S[] = "SolverParameter";

static dm_status fail(const dm_solver *s, const char *field, dm_status status, const char *text)
{
    return nn_fail_at(s->m, nn_line(s->m, field), status, "%s", text);
}

static void pass_over(const dm_solver *s)
{
    static const char *const no_effect[] = {"solver_mode", "device_id", "layer_wise_reduce"};
    for (int i = 0; i < NN_COUNT(no_effect); i++) {
        nn_use(s->m, no_effect[i]); /* which device is the session's business */
    }
}

dm_status nn_solver_probe(const dm_solver *s)
{
    const size_t room = strlen(s->prefix) + 16;
    char *probe = malloc(room);
    if (!probe) {
        return dm_error_no_memory("a path", room);
    }
    snprintf(probe, room, "%s.tempfile", s->prefix);
    const bool there = access(probe, F_OK) == 0;
    FILE *f = fopen(probe, "ae");
    if (f) {
        fclose(f);
    }
    if (f && !there) {
        unlink(probe);
    }
    free(probe);
    return f ? DM_OK
             : nn_fail_at(s->m, nn_line(s->m, "snapshot_prefix"), DM_ERR_IO, "no file can be written at '%s'",
                          s->prefix);
}

/* The prefix of snapshots: that of the file, its file name added where it is a folder, or the solver's path
 * without extension. */
static dm_status find_prefix(dm_solver *s, const char *path)
{
    const char *given = nn_string(s->m, S, "snapshot_prefix"), *base = strrchr(path, '/');
    size_t room = strlen(given) + strlen(path) + 3;
    struct stat about;
    if (!(s->prefix = malloc(room))) {
        return dm_error_no_memory("a path", room);
    }
    base = base ? base + 1 : path;
    bool folder = *given && stat(given, &about) == 0 && S_ISDIR(about.st_mode);
    snprintf(s->prefix, room, "%s%s%s", given, folder && given[strlen(given) - 1] != '/' ? "/" : "",
             folder   ? base
             : *given ? ""
                      : path);
    char *point = folder || !*given ? strrchr(s->prefix, '.') : NULL;
    if (point && !strchr(point, '/')) {
        *point = 0;
    }
    return s->snapshot ? nn_solver_probe(s) : DM_OK;
}

static dm_status check_ranges(const dm_solver *s)
{
    static const struct {
        const char *field;
        int64_t least;
    } ranges[] = {{"max_iter", 0},  {"display", 0},       {"average_loss", 1},
                  {"iter_size", 1}, {"test_interval", 0}, {"snapshot", 0}};
    for (int i = 0; i < NN_COUNT(ranges); i++) {
        int64_t value = nn_int(s->m, S, ranges[i].field);
        if (value < ranges[i].least || (i == 2 && value > 1 << 20)) {
            return nn_fail_at(s->m, nn_line(s->m, ranges[i].field), DM_ERR_FORMAT,
                              "%s is %lld; it must be at least %lld", ranges[i].field, (long long)value,
                              (long long)ranges[i].least);
        }
    }
    return DM_OK;
}

dm_status nn_solver_settings(dm_solver *s, const char *path)
{
    const char *norm = nn_string(s->m, S, "regularization_type");
    dm_status status = check_ranges(s);
    pass_over(s);
    if (status == DM_OK && strcmp(norm, "L1") != 0 && strcmp(norm, "L2") != 0) {
        status = fail(s, "regularization_type", DM_ERR_FORMAT, "regularization_type must be L1 or L2");
    }
    if (status != DM_OK) {
        return status;
    }
    s->l1 = strcmp(norm, "L1") == 0;
    s->debug = nn_int(s->m, S, "debug_info") != 0;
    s->hdf5 = nn_int(s->m, S, "snapshot_format") == 0;
    s->max_iter = s->max_iter >= 0 ? s->max_iter : nn_int(s->m, S, "max_iter");
    nn_use(s->m, "max_iter");
    s->display = nn_int(s->m, S, "display");
    s->average_loss = nn_int(s->m, S, "average_loss");
    s->iter_size = nn_int(s->m, S, "iter_size");
    s->test_interval = nn_int(s->m, S, "test_interval");
    s->test_at_start = nn_int(s->m, S, "test_initialization") != 0;
    s->test_loss = nn_int(s->m, S, "test_compute_loss") != 0;
    s->snapshot = nn_int(s->m, S, "snapshot");
    nn_use(s->m, "snapshot_after_train");
    nn_use(s->m, "random_seed");
    s->base_lr = nn_real(s->m, S, "base_lr");
    s->gamma = nn_real(s->m, S, "gamma");
    s->power = nn_real(s->m, S, "power");
    s->momentum = nn_real(s->m, S, "momentum");
    s->weight_decay = nn_real(s->m, S, "weight_decay");
    s->clip = nn_real(s->m, S, "clip_gradients");
    s->losses = calloc((size_t)s->average_loss, sizeof *s->losses);
    status = s->losses ? nn_solver_rate_check(s)
                       : dm_error_no_memory("losses", (size_t)s->average_loss * sizeof *s->losses);
    return status == DM_OK ? find_prefix(s, path) : status;
}
