/* The loop of a solver, and the calls of <dmath/nn.h> on it. */
#include "solver/solver.h"

#include "data/feed.h"
#include "proto/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nn_solver_log(const dm_solver *s, const char *format, ...)
{
    char line[1024];
    if (s->log) {
        va_list args;
        va_start(args, format);
        vsnprintf(line, sizeof line, format, args);
        va_end(args);
        s->log(s->log_context, line);
    }
}

void nn_solver_tell(const dm_solver *s, dm_train_event event)
{
    nn_solver_tell_of(s, s->iter, event);
}

void nn_solver_tell_of(const dm_solver *s, int64_t iteration, dm_train_event event)
{
    if (s->event) {
        event.iteration = iteration;
        event.end = s->max_iter;
        event.seconds = nn_now_s() - s->opened;
        s->event(s->event_context, &event);
    }
}

/* --- opening and closing */
enum {
    MOST_IN_GROUPS = 64
}; /* workers of a session in whose groups user functions run, as readers of records are */

typedef struct source { /* of the settings: a file, or calls of the program, with a net or without */
    const char *path;
    const dm_prototxt *settings, *net;
} source;

/* The last workers test, the others train. */
static dm_status make_groups(dm_solver *s)
{
    const int test = s->test_workers, train = s->workers - test;
    int *all = malloc((size_t)s->workers * sizeof *all);
    dm_status status =
        all ? DM_OK : dm_error_no_memory("the workers of a group", (size_t)s->workers * sizeof *all);
    for (int w = 0; all && w < s->workers; w++) {
        all[w] = w;
    }
    if (status == DM_OK && test > 0) {
        status = dm_group_create(s->session, all, train, &s->train_on);
        status = status == DM_OK ? dm_group_create(s->session, all + train, test, &s->test_on) : status;
    }
    free(all);
    return status;
}

static dm_status open_solver(dm_solver *s, const source *from)
{
    dm_status status = from->path ? nn_text_read(from->path, "SolverParameter", &s->document)
                                  : nn_prototxt_document(from->settings, &s->document);
    status = status == DM_OK && from->net ? nn_prototxt_document(from->net, &s->given) : status;
    if (status != DM_OK) {
        return status;
    }
    s->m = s->document->root;
    status = nn_solver_upgrade(s->m);
    status = status == DM_OK ? nn_solver_settings(s, from->path ? from->path : "solver") : status;
    status = status == DM_OK ? make_groups(s) : status;
    status = status == DM_OK ? nn_solver_nets(s) : status;
    status = status == DM_OK ? nn_solver_rule(s) : status;
    status = status == DM_OK ? nn_net_enter(s->net) : status;
    status = status == DM_OK ? nn_net_leave(s->net, nn_solver_histories(s)) : status;
    if (status == DM_OK) {
        /* nets that have copies of these tell what nobody asks for */
        static const char *const copied[] = {"train_state", "test_state", "net_param", "train_net_param",
                                             "test_net_param"};
        for (int f = 0; f < NN_COUNT(copied); f++) {
            for (int64_t i = 0; i < nn_count(s->m, copied[f]); i++) {
                nn_use_all(nn_sub_at(s->m, copied[f], i));
            }
        }
        status = nn_unused(s->m);
    }
    return status;
}

static void destroy(dm_solver *s, dm_array a)
{
    if (dm_array_destroy(s->session, a) != DM_OK) {
        nn_solver_log(s, "an array was gone before its solver ended: %s", dm_error_message());
    }
}

static void close_solver(dm_solver *s)
{
    nn_solver_unkeep(s);
    for (int i = 0; i < s->test_count; i++) {
        nn_test_free(s, &s->tests[i]);
    }
    for (int i = 0; s->history && i < s->history_count; i++) {
        destroy(s, s->history[i]);
    }
    for (int i = 0; s->flat_history && i < s->flat_history_count; i++) {
        destroy(s, s->flat_history[i]);
    }
    destroy(s, s->norm);
    nn_step_drop(s);
    nn_net_free(s->net);
    if (dm_group_destroy(s->session, s->train_on) != DM_OK ||
        dm_group_destroy(s->session, s->test_on) != DM_OK) {
        nn_solver_log(s, "a group was gone before its solver ended: %s", dm_error_message());
    }
    nn_document_free(s->document);
    nn_document_free(s->given);
    free(s->tests);
    free(s->history);
    free(s->flat_history);
    free(s->losses);
    free(s->prefix);
    free(s);
}

dm_status dm_solver_close(dm_solver *s)
{
    if (s) {
        close_solver(s);
    }
    return DM_OK;
}

static dm_status make_solver(const char *call, dm_session *session, const source *from,
                             const dm_solver_options *options, dm_solver **solver)
{
    dm_solver_options o = DM_SOLVER_OPTIONS_INIT;
    bool sized = !options || nn_sized_take(options, offsetof(dm_solver_options, shuffle), &o, sizeof o);
    if (!session || (!from->path && !from->settings) || !solver || !sized || o.slices < 0 ||
        o.store_bytes < 0 || !nn_type_fits(o.type) || o.level < -1 || o.read < DM_READ_DEFAULT ||
        o.read > DM_READ_BY_WORKERS || o.update < DM_UPDATE_DEFAULT || o.update > DM_UPDATE_DEALT) {
        return dm_error_set(
            DM_ERR_ARG,
            "%s: session, path or settings, and solver must be there, options be made with "
            "DM_SOLVER_OPTIONS_INIT, slices and store_bytes not negative, type DM_F32, DM_F16 or DM_BF16, "
            "level at least -1, read DM_READ_DEFAULT, DM_READ_BY_PROGRAM or DM_READ_BY_WORKERS, "
            "update DM_UPDATE_DEFAULT, DM_UPDATE_WHOLE or DM_UPDATE_DEALT",
            call);
    }
    if ((o.own_loss != NULL) != (o.own != NULL)) {
        return dm_error_set(
            DM_ERR_ARG,
            "%s: own_loss names the blobs whose gradients the function own gives: one of the two is NULL",
            call);
    }
    if (o.test_workers < 0 || (o.test_workers > 0 && o.test_workers >= dm_workers(session))) {
        return dm_error_set(
            DM_ERR_ARG,
            "%s: test_workers is %d; of the %d workers of the session at least one must be left "
            "for training",
            call, o.test_workers, dm_workers(session));
    }
    dm_status status = nn_wire_check(call, o.wire, o.type);
    dm_solver *s = status == DM_OK ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        return status == DM_OK ? dm_error_no_memory("a solver", sizeof *s) : status;
    }
    s->session = session;
    s->slices = o.slices;
    s->type = o.type;
    s->wire = o.wire;
    s->max_iter = o.max_iter;
    s->log = o.log;
    s->log_context = o.log_context;
    s->shuffle = o.shuffle != 0;
    s->skip_damaged = o.skip_damaged != 0;
    s->split = o.split;
    s->stages = o.stages;
    s->level = o.level;
    s->own = (nn_own){o.own_loss, o.own, o.own_context, o.own_waits != 0};
    s->types = o.layer_types;
    s->type_count = o.layer_type_count;
    s->lean = o.lean != 0;
    s->store_bytes = o.store_bytes;
    s->store_folder = o.store_folder;
    s->update = o.update;
    s->workers = dm_workers(session);
    s->test_workers = o.test_workers;
    const bool many = s->test_workers > 0 && s->workers > MOST_IN_GROUPS;
    s->read = many && o.read == DM_READ_DEFAULT ? DM_READ_BY_PROGRAM : o.read;
    s->event = o.event;
    s->event_context = o.event_context;
    s->opened = nn_now_s();
    status = open_solver(s, from);
    if (status != DM_OK) {
        char text[2048];
        snprintf(text, sizeof text, "%s", dm_error_message());
        close_solver(s);
        return dm_error_set(status, "%s", text);
    }
    *solver = s;
    return DM_OK;
}

dm_status dm_solver_open(dm_session *session, const char *path, const dm_solver_options *options,
                         dm_solver **solver)
{
    return make_solver("dm_solver_open", session, &(source){.path = path}, options, solver);
}

dm_status dm_solver_create(dm_session *session, const dm_prototxt *settings, const dm_prototxt *net,
                           const dm_solver_options *options, dm_solver **solver)
{
    if ((settings && !nn_prototxt_is(settings, "SolverParameter")) ||
        (net && !nn_prototxt_is(net, "NetParameter"))) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_solver_create: settings must be a SolverParameter, net a NetParameter");
    }
    return make_solver("dm_solver_create", session, &(source){.settings = settings, .net = net}, options,
                       solver);
}

/* --- training */

/* The mean of the last losses, as many as average_loss says and this run has. */
static double smoothed(const dm_solver *s)
{
    int64_t n = s->iter - s->start + 1 < s->average_loss ? s->iter - s->start + 1 : s->average_loss;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += s->losses[(s->iter - i) % s->average_loss];
    }
    return sum / (double)n;
}

/* Does a display, now or soon, need the loss of this iteration? Reading it waits for the workers. */
static bool wants_loss(const dm_solver *s)
{
    return s->display && (s->display - s->iter % s->display) % s->display < s->average_loss;
}

static dm_status show_outputs(dm_solver *s)
{
    int score = 0;
    dm_status status = DM_OK;
    for (int k = 0; status == DM_OK && k < s->net->output_count; k++) {
        const nn_blob *b = s->net->blobs[s->net->output[k]];
        dm_train_event event = {.kind = DM_TRAIN_OUTPUT, .name = b->name, .weight = b->loss_weight};
        double *values = malloc((size_t)b->count * sizeof *values);
        status = values ? dm_array_read_as(s->session, b->data, NULL, NULL, DM_F64, values, 0)
                        : dm_error_no_memory("the elements of an output", (size_t)b->count * sizeof *values);
        for (int64_t i = 0; status == DM_OK && i < b->count; i++) {
            const double value = values[nn_blob_place(b, i)];
            char loss[96] = "";
            if (b->loss_weight != 0) {
                snprintf(loss, sizeof loss, " (* %g = %g loss)", b->loss_weight, b->loss_weight * value);
            }
            nn_solver_log(s, "    Train net output #%d: %s = %g%s", score++, b->name, value, loss);
            event.element = i;
            event.value = value;
            nn_solver_tell(s, event);
        }
        free(values);
    }
    return status;
}

static dm_status display(dm_solver *s)
{
    double now = nn_now_s(), seconds = now - s->display_time;
    nn_solver_log(s, "Iteration %lld (%g iter/s, %gs/%lld iters), loss = %g", (long long)s->iter,
                  (double)(s->iter - s->display_iter) / (seconds > 0 ? seconds : 1), seconds,
                  (long long)s->display, smoothed(s));
    s->display_time = now;
    s->display_iter = s->iter;
    nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_DISPLAY, .loss = smoothed(s), .rate = s->rate});
    return show_outputs(s);
}

/* The loss of a step; the workers bring the next batch while the program waits for it. */
static dm_status wait_for_loss(dm_solver *s, double *loss)
{
    dm_status status = s->iter + 1 < s->end ? nn_feeds_ahead(s->net) : DM_OK;
    status = status == DM_OK ? nn_solver_loss(s, loss) : status;
    if (status != DM_OK) {
        nn_feeds_forget(s->net);
    }
    return status;
}

static dm_status one_iteration(dm_solver *s)
{
    double total = 0, loss = 0;
    bool wanted = wants_loss(s);
    dm_status status = DM_OK;
    if (s->test_interval && s->iter % s->test_interval == 0 && (s->iter > 0 || s->test_at_start)) {
        status = nn_test_begin(s);
    }
    if (s->stopped) { /* in the test */
        return status;
    }
    s->rate = nn_solver_rate(s);
    if (status == DM_OK && s->program.id) {
        status = nn_step_run(s);
        status = status == DM_OK ? nn_test_beside(s) : status;
        status = status == DM_OK && wanted ? wait_for_loss(s, &total) : status;
    }
    s->net->debug = s->debug && s->display && s->iter % s->display == 0;
    for (int64_t i = 0; status == DM_OK && !s->program.id && i < s->iter_size; i++) {
        status = nn_forward(s->net);
        status = status == DM_OK ? nn_backward(s->net, i > 0) : status;
        status = status == DM_OK && wanted ? nn_solver_loss(s, &loss) : status;
        total += loss;
    }
    s->losses[s->iter % s->average_loss] = total / (double)s->iter_size;
    if (status == DM_OK && s->display && s->iter % s->display == 0) {
        status = display(s);
    }
    status = status == DM_OK ? nn_solver_update(s) : status;
    status = status == DM_OK && !s->program.id ? nn_test_beside(s) : status;
    if (status == DM_OK) {
        nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_STEP});
    }
    if (status == DM_OK && s->snapshot && s->iter % s->snapshot == 0) {
        status = nn_solver_snapshot(s);
    }
    return status;
}

dm_status nn_solver_hear(dm_solver *s)
{
    const int said = s->ask ? s->ask(s->ask_context) : DM_SOLVER_GO_ON;
    s->stopped = s->stopped || said == DM_SOLVER_STOP;
    return said == DM_SOLVER_SNAPSHOT ? nn_solver_snapshot(s) : DM_OK;
}

static dm_status train(dm_solver *s, int64_t end)
{
    dm_status status = s->iter == s->at ? DM_OK : nn_solver_continue(s);
    s->display_time = nn_now_s();
    s->display_iter = s->start = s->iter;
    s->end = end;
    s->net->debug = false; /* one_iteration says */
    status = status != DM_OK || s->program.id ? status : nn_step_record(s);
    while (status == DM_OK && s->iter < end && !s->stopped) {
        status = one_iteration(s);
        status = status == DM_OK && !s->stopped ? nn_solver_hear(s) : status;
    }
    s->testing.going = s->testing.going && status == DM_OK;
    return status;
}

/* Not from a function of the program that the solver calls. */
static dm_status work_begin(dm_solver *s, const char *call)
{
    if (s->busy) {
        return dm_error_set(DM_ERR_STATE,
                            "%s: the solver is at work, and has called the function that calls this", call);
    }
    dm_status status = nn_net_enter(s->net);
    s->busy = status == DM_OK;
    return status;
}

static dm_status work_end(dm_solver *s, dm_status status)
{
    s->busy = false;
    return nn_net_leave(s->net, status);
}

dm_status dm_solver_step(dm_solver *s, int64_t iterations)
{
    if (!s || iterations < 0) {
        return dm_error_set(DM_ERR_ARG, "dm_solver_step: solver must be there, iterations not negative");
    }
    dm_status status = work_begin(s, "dm_solver_step");
    if (status != DM_OK) {
        return status;
    }
    status = train(s, s->iter + iterations);
    return work_end(s, status == DM_OK ? nn_test_finish(s) : status);
}

/* After the last update: the loss that follows from it, and the last test. */
static dm_status finish(dm_solver *s)
{
    dm_status status = DM_OK;
    if (s->display && s->iter % s->display == 0) {
        double loss = 0;
        status = nn_step_forward(s);
        status = status == DM_OK ? nn_solver_loss(s, &loss) : status;
        s->losses[s->iter % s->average_loss] = loss;
        if (status == DM_OK) {
            nn_solver_log(s, "Iteration %lld, loss = %g", (long long)s->iter, smoothed(s));
            nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_DISPLAY, .loss = smoothed(s), .rate = s->rate});
        }
    }
    if (status == DM_OK && s->test_interval && s->iter % s->test_interval == 0) {
        status = nn_test_begin(s);
        status = status == DM_OK ? nn_test_finish(s) : status;
    }
    if (status == DM_OK) {
        nn_solver_log(s, "Optimization Done.");
        nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_END});
    }
    return status;
}

static dm_status run(dm_solver *s)
{
    nn_solver_log(s, "Solving %s", s->net->name);
    nn_solver_log(s, "Learning Rate Policy: %s", nn_string(s->m, "SolverParameter", "lr_policy"));
    if (s->max_iter == 0 && !nn_has(s->m, "max_iter")) {
        nn_solver_log(s, "%s: there is no max_iter: nothing is trained", s->m->file);
    }
    const bool after = nn_int(s->m, "SolverParameter", "snapshot_after_train") != 0;
    dm_status status = after ? nn_solver_probe(s) : DM_OK; /* better now than after hours */
    status = status == DM_OK ? train(s, s->max_iter) : status;
    if (status == DM_OK && after && (!s->snapshot || s->iter % s->snapshot != 0)) {
        status = nn_solver_snapshot(s);
    }
    status = status == DM_OK ? nn_test_finish(s) : status;
    if (status == DM_OK && s->stopped) {
        nn_solver_log(s, "Optimization stopped early.");
        nn_solver_tell(s, (dm_train_event){.kind = DM_TRAIN_END});
        return DM_OK;
    }
    return status == DM_OK ? finish(s) : status;
}

dm_status dm_solver_run(dm_solver *s, int (*ask)(void *context), void *context)
{
    dm_status status =
        s ? work_begin(s, "dm_solver_run") : dm_error_set(DM_ERR_ARG, "dm_solver_run: solver is NULL");
    if (status != DM_OK) {
        return status;
    }
    s->ask = ask;
    s->ask_context = context;
    status = work_end(s, run(s));
    s->ask = NULL;
    s->stopped = false;
    return status;
}

dm_status dm_solver_restore(dm_solver *s, const char *path)
{
    dm_status status = s && path ? work_begin(s, "dm_solver_restore")
                                 : dm_error_set(DM_ERR_ARG, "dm_solver_restore: an argument is NULL");
    return status == DM_OK ? work_end(s, nn_solver_restore(s, path)) : status;
}

dm_status dm_solver_snapshot(dm_solver *s)
{
    dm_status status =
        s ? nn_net_enter(s->net) : dm_error_set(DM_ERR_ARG, "dm_solver_snapshot: solver is NULL");
    return status == DM_OK ? nn_net_leave(s->net, nn_solver_snapshot(s)) : status;
}

int64_t dm_solver_iteration(const dm_solver *s)
{
    return s ? s->iter : -1;
}

dm_net *dm_solver_test_net(dm_solver *s, int i)
{
    return s && i >= 0 && i < s->test_count ? s->tests[i].net : NULL;
}

dm_net *dm_solver_net(dm_solver *s)
{
    return s ? s->net : NULL;
}
