/* Layers whose functions the program gives: what Caffe calls Python layers. */
#include "layers/layers.h"

#include <stdlib.h>
#include <string.h>

/* The type as the net's other parts see it, and the program's behind it. */
typedef struct nn_user_type {
    nn_layer_type seen;
    dm_layer_type given;
} nn_user_type;

typedef struct user_state {
    void *mine;     /* the program's */
    unsigned asked; /* gradients of bottoms that its function has asked for in this pass */
    enum { ELSEWHERE, IN_SETUP, IN_BACKWARD } at;
} user_state;

static const dm_layer_type *given(const nn_layer *l)
{
    return &((const nn_user_type *)l->type)->given;
}

typedef dm_status (*user_function)(dm_layer *layer, void *context);

/* Calls a function of the program, which may fail without a text. */
static dm_status call(nn_layer *l, user_function function)
{
    (void)!dm_error_set(DM_ERR_ARG, "it gives no reason");
    return function(l, given(l)->context);
}

/* The text of a failure of the program's function, with the place of the layer. */
static dm_status failed(const nn_layer *l, const char *function, dm_status status)
{
    return status == DM_OK || strncmp(dm_error_message(), l->message->file, strlen(l->message->file)) == 0
               ? status
               : nn_layer_fail(l, "type", status, "failed in its function %s: %s", function,
                               dm_error_message());
}

static dm_status setup(nn_layer *l)
{
    const char *const known[] = {"module", "layer", "param_str", "share_in_parallel"};
    user_state *u = calloc(1, sizeof *u);
    l->u.state = u;
    for (int i = 0; i < NN_COUNT(known); i++) {
        nn_use(l->own, known[i]);
    }
    if (!u) {
        return dm_error_no_memory("a layer", sizeof *u);
    }
    u->at = IN_SETUP;
    dm_status status = failed(l, "setup", call(l, given(l)->setup));
    u->at = ELSEWHERE;
    for (int i = 0; status == DM_OK && i < l->tops; i++) {
        if (l->top[i]->count == 0) {
            status =
                nn_layer_fail(l, "type", DM_ERR_STATE,
                              "has not set the shape of its top '%s' in its function setup", l->top[i]->name);
        }
    }
    return status;
}

static dm_status prepare(nn_layer *l)
{
    const dm_layer_type *t = given(l);
    return t->prepare ? failed(l, "prepare", call(l, t->prepare)) : DM_OK;
}

static dm_status forward(nn_layer *l)
{
    return failed(l, "forward", call(l, given(l)->forward));
}

static dm_status backward(nn_layer *l)
{
    user_state *u = l->u.state;
    u->asked = 0;
    u->at = IN_BACKWARD;
    dm_status status = failed(l, "backward", call(l, given(l)->backward));
    u->at = ELSEWHERE;
    for (int i = 0; status == DM_OK && i < l->bottoms; i++) {
        if (l->down[i]) {
            dm_array down = nn_down(l, i);
            status = u->asked >> i & 1 ? DM_OK : dm_fill(l->net->session, down, 0);
            status = nn_down_done(l, i, status);
        }
    }
    return status;
}

static void drop(nn_layer *l)
{
    if (l->u.state && given(l)->drop) {
        given(l)->drop(l, given(l)->context);
    }
    free(l->u.state);
}

/* --- the list of types of a net */
enum { MOST_BOTTOMS = 31 };

static bool makes_sense(const dm_layer_type *t)
{
    return t->name && *t->name && t->setup && t->forward && t->bottoms[0] >= 0 &&
           t->bottoms[1] <= MOST_BOTTOMS && t->bottoms[1] >= t->bottoms[0] && t->tops[0] >= 0 &&
           t->tops[1] >= t->tops[0];
}

dm_status nn_user_types(nn_net *net, const dm_layer_type *types, int count)
{
    if (count < 0 || (count > 0 && !types)) {
        return dm_error_set(DM_ERR_ARG, "layer_types: there are %d, and the list is %s", count,
                            types ? "there" : "NULL");
    }
    net->types = calloc((size_t)count + 1, sizeof *net->types);
    if (!net->types) {
        return dm_error_no_memory("types of layers", ((size_t)count + 1) * sizeof *net->types);
    }
    const char *from = (const char *)types;
    for (int i = 0; i < count; i++, from += types->size) { /* the caller's structures may have another size */
        dm_layer_type t;
        if (!nn_sized_take(from, offsetof(dm_layer_type, backward), &t, sizeof t) || t.size != types->size ||
            !makes_sense(&t)) {
            return dm_error_set(DM_ERR_ARG,
                                "layer_types: number %d must be made with DM_LAYER_TYPE_INIT and have a name, "
                                "setup, forward, and at most %d bottoms",
                                i, MOST_BOTTOMS);
        }
        net->types[net->type_count++] = (nn_user_type){
            .given = t,
            .seen = {.name = t.name,
                     .field = "python_param",
                     .bottoms = {t.bottoms[0], t.bottoms[1]},
                     .tops = {t.tops[0], t.tops[1]},
                     .traits = NN_LOOKS | (t.bottoms[1] == 0 ? NN_SOURCE : 0) | (t.waits ? NN_WAITS : 0) |
                               (t.prepare ? NN_KEEPS : 0) | NN_NUMBERS,
                     .differentiable = t.gradients,
                     .setup = setup,
                     .prepare = prepare,
                     .forward = forward,
                     .backward = t.backward ? backward : NULL,
                     .drop = drop}};
    }
    return DM_OK;
}

const nn_layer_type *nn_user_type_of(const nn_net *net, const nn_message *layer)
{
    const char *name = nn_string(layer, "LayerParameter", "type");
    if (strcmp(name, "Python") == 0) {
        name = nn_string(nn_sub(layer, "python_param"), "PythonParameter", "layer");
    }
    for (int i = 0; i < net->type_count; i++) {
        if (strcmp(net->types[i].given.name, name) == 0) {
            return &net->types[i].seen;
        }
    }
    return NULL;
}

/* --- the calls of <dmath/nn.h> for the program's functions */
static bool is_users(const nn_layer *l)
{
    return l && l->type->setup == setup;
}

static dm_status refuse(const char *call, const char *text)
{
    return dm_error_set(DM_ERR_ARG, "%s: %s", call, text);
}

static const user_state *state_of(const nn_layer *l)
{
    return l->u.state;
}

dm_session *dm_layer_session(const dm_layer *l)
{
    return is_users(l) ? l->net->session : NULL;
}

const char *dm_layer_name(const dm_layer *l)
{
    return is_users(l) ? l->name : NULL;
}

const char *dm_layer_text(const dm_layer *l)
{
    return is_users(l) ? nn_string(l->own, "PythonParameter", "param_str") : NULL;
}

int dm_layer_phase(const dm_layer *l)
{
    return is_users(l) ? l->net->phase : -1;
}

int dm_layer_slices(const dm_layer *l)
{
    return is_users(l) ? l->net->slices : -1;
}

dm_dtype dm_layer_wire(const dm_layer *l)
{
    return is_users(l) ? l->net->wire : (dm_dtype)0;
}

uint64_t dm_layer_seed(const dm_layer *l)
{
    /* a backward pass comes when the number of the forward pass has advanced */
    return is_users(l) ? nn_layer_seed(l, l->net->pass - (state_of(l)->at == IN_BACKWARD)) : 0;
}

void **dm_layer_state(dm_layer *l)
{
    return is_users(l) ? &((user_state *)l->u.state)->mine : NULL;
}

static bool give(const nn_blob *b, dm_layer_blob *out)
{
    dm_layer_blob all = {sizeof all, b->name, b->ndim, {0}, b->data, b->diff, b->loss_weight};
    memcpy(all.shape, b->shape, sizeof all.shape);
    return nn_sized_give(&all, sizeof all, offsetof(dm_layer_blob, data), out);
}

dm_status dm_layer_bottom(dm_layer *l, int i, dm_layer_blob *out)
{
    return is_users(l) && out && i >= 0 && i < l->bottoms && give(l->bottom[i], out)
               ? DM_OK
               : refuse("dm_layer_bottom", "there is no such bottom, or out->size is not set");
}

dm_status dm_layer_top(dm_layer *l, int i, dm_layer_blob *out)
{
    return is_users(l) && out && i >= 0 && i < l->tops && give(l->top[i], out)
               ? DM_OK
               : refuse("dm_layer_top", "there is no such top, or out->size is not set");
}

int dm_layer_bottoms(const dm_layer *l)
{
    return is_users(l) ? l->bottoms : -1;
}

int dm_layer_tops(const dm_layer *l)
{
    return is_users(l) ? l->tops : -1;
}

dm_status dm_layer_set_top(dm_layer *l, int i, int ndim, const int64_t *shape)
{
    if (!is_users(l) || i < 0 || i >= l->tops || ndim < 0 || ndim > DM_MAX_DIMS || (ndim && !shape)) {
        return refuse("dm_layer_set_top", "there is no such top, or the shape has no 0 to 8 dims");
    }
    if (state_of(l)->at != IN_SETUP) {
        return dm_error_set(DM_ERR_STATE, "dm_layer_set_top: only the function setup may call it");
    }
    return ndim ? nn_top_shape(l, i, ndim, shape) : nn_top_number(l, i);
}

dm_status dm_layer_add_param(dm_layer *l, int ndim, const int64_t *shape, double first)
{
    nn_param *p = NULL;
    if (!is_users(l) || ndim < 1 || ndim > DM_MAX_DIMS || !shape || l->params == NN_MAX_PARAMS) {
        return refuse("dm_layer_add_param", "there may be 6 parameters of 1 to 8 dims");
    }
    if (state_of(l)->at != IN_SETUP) {
        return dm_error_set(DM_ERR_STATE, "dm_layer_add_param: only the function setup may call it");
    }
    dm_status status = nn_new_param(l, ndim, shape, NULL, &p);
    if (status == DM_OK && p->owner == l) {
        p->first = first;
    }
    return status;
}

dm_status dm_layer_param(dm_layer *l, int i, dm_array *data, dm_array *diff, double *beta)
{
    if (!is_users(l) || i < 0 || i >= l->params) {
        return refuse("dm_layer_param", "there is no such parameter");
    }
    if (data) {
        *data = l->param[i]->data;
        nn_param_written(l->param[i], true);
    }
    if (diff) {
        *diff = l->param[i]->diff;
    }
    if (beta) {
        *beta = nn_param_beta(l, i);
    }
    return DM_OK;
}

dm_status dm_layer_gradient(dm_layer *l, int bottom, dm_array *out)
{
    if (!is_users(l) || !out || bottom < 0 || bottom >= l->bottoms) {
        return refuse("dm_layer_gradient", "there is no such bottom");
    }
    user_state *u = l->u.state;
    if (u->at != IN_BACKWARD) {
        return dm_error_set(DM_ERR_STATE, "dm_layer_gradient: only the function backward may call it");
    }
    *out = l->down[bottom] ? nn_down(l, bottom) : DM_NO_ARRAY;
    u->asked |= l->down[bottom] ? 1U << bottom : 0;
    return DM_OK;
}

dm_status dm_layer_fail(dm_layer *l, dm_status status, const char *text)
{
    return is_users(l) && text ? nn_layer_fail(l, "python_param", status, "%s", text)
                               : refuse("dm_layer_fail", "layer and text must be there");
}
