#include "support/tree.h"

#include <stdio.h>
#include <string.h>

enum { ARRAY, LITERAL, GIVEN, ADD, SUBTRACT, MULTIPLY, NEGATIVE, LEAST, LARGEST, CHOOSE, KINDS };

static int grow(dmt_case *c, dmt_tree *t, int depth)
{
    static const int children[KINDS] = {
        [ADD] = 2, [SUBTRACT] = 2, [MULTIPLY] = 2, [NEGATIVE] = 1, [LEAST] = 2, [LARGEST] = 2, [CHOOSE] = 4};
    int id = t->nodes++;
    int64_t pick = dmt_int(&c->random, 0, 9);
    dmt_tree_node n = {.kind = pick < 6 ? ARRAY : pick < 8 ? LITERAL : GIVEN};
    if (depth > 0 && dmt_chance(&c->random, 85)) {
        n.kind = (int)dmt_int(&c->random, ADD, depth > 1 ? CHOOSE : LARGEST);
        if (dmt_chance(&c->random, 60)) { /* these become other rows together */
            n.kind = dmt_chance(&c->random, depth > 1 ? 70 : 20) ? ADD : MULTIPLY;
        }
    }
    if (n.kind == ARRAY) { /* all of them are used */
        n.which = t->arrays < DMT_TREE_ARRAYS ? t->arrays++ : (int)dmt_int(&c->random, 0, DMT_TREE_ARRAYS - 1);
    } else if (n.kind == LITERAL) {
        n.which = (int)dmt_int(&c->random, 0, DMT_TREE_LEAVES - 1);
    } else if (n.kind == GIVEN) {
        n.which = (int)dmt_int(&c->random, 0, 1);
        t->uses_given[n.which] = true;
    }
    for (int i = 0; i < children[n.kind]; i++) {
        n.child[i] = t->nodes < DMT_TREE_NODES - 4 ? grow(c, t, depth - 1) : 0;
        if (n.child[i] == 0) { /* no room: any leaf that is there, or a new one */
            n.child[i] = t->nodes;
            t->node[t->nodes++] = (dmt_tree_node){.kind = LITERAL};
        }
    }
    t->node[id] = n;
    return id;
}

static void write(dmt_tree *t, int id)
{
    static const char *const signs[KINDS] = {[ADD] = " + ", [SUBTRACT] = " - ", [MULTIPLY] = " * "};
    const dmt_tree_node *n = &t->node[id];
    char *end = t->text + strlen(t->text);
    size_t room = sizeof t->text - (size_t)(end - t->text);
    switch (n->kind) {
    case ARRAY:
        snprintf(end, room, "x%d", n->which);
        return;
    case LITERAL:
        snprintf(end, room, "%.17g", t->literal[n->which]);
        return;
    case GIVEN:
        snprintf(end, room, "g%d", n->which);
        return;
    case NEGATIVE:
        snprintf(end, room, "-(");
        write(t, n->child[0]);
        strcat(t->text, ")");
        return;
    case CHOOSE:
        snprintf(end, room, "where(");
        write(t, n->child[0]);
        strcat(t->text, " < ");
        write(t, n->child[1]);
        strcat(t->text, ", ");
        write(t, n->child[2]);
        strcat(t->text, ", ");
        write(t, n->child[3]);
        strcat(t->text, ")");
        return;
    default:
        snprintf(end, room, n->kind == LEAST ? "minimum(" : n->kind == LARGEST ? "maximum(" : "(");
        write(t, n->child[0]);
        strcat(t->text, signs[n->kind] ? signs[n->kind] : ", ");
        write(t, n->child[1]);
        strcat(t->text, ")");
    }
}

/* A result of exact arithmetic as the type holds it. */
static long double round_to(const dmt_tree *t, int kind, long double a, long double b)
{
    if (t->carrier == DM_F64) {
        volatile double x = (double)a, y = (double)b,
                        r = kind == ADD        ? x + y
                            : kind == SUBTRACT ? x - y
                                               : x * y;
        return r;
    }
    if (t->carrier == DM_F32) {
        volatile float x = (float)a, y = (float)b, r = kind == ADD ? x + y : kind == SUBTRACT ? x - y : x * y;
        return r;
    }
    uint64_t x = dmt_wrapped(a), y = dmt_wrapped(b), r = kind == ADD ? x + y : kind == SUBTRACT ? x - y : x * y;
    return dmt_convert(DM_I64, t->dtype, (long double)(int64_t)r);
}

static long double value_of(const dmt_tree *t, int id, dmt_host *const *x, const dmt_host *out, int64_t i)
{
    const dmt_tree_node *n = &t->node[id];
    long double v[4] = {0};
    if (n->kind == ARRAY) {
        return x[n->which]->v[dmt_broadcast(x[n->which], out, i)];
    }
    if (n->kind == LITERAL || n->kind == GIVEN) {
        return dmt_from_real(t->dtype, n->kind == LITERAL ? t->literal[n->which] : t->given[n->which]);
    }
    for (int k = 0; k < (n->kind == CHOOSE ? 4 : n->kind == NEGATIVE ? 1 : 2); k++) {
        v[k] = value_of(t, n->child[k], x, out, i);
    }
    switch (n->kind) {
    case NEGATIVE:
        return dmt_is_float(t->dtype) ? -v[0] : round_to(t, SUBTRACT, 0, v[0]);
    case LEAST:
        return v[0] < v[1] || v[0] != v[0] ? v[0] : v[1];
    case LARGEST:
        return v[0] > v[1] || v[0] != v[0] ? v[0] : v[1];
    case CHOOSE:
        return v[0] < v[1] ? v[2] : v[3];
    default:
        return round_to(t, n->kind, v[0], v[1]);
    }
}

long double dmt_tree_value(const dmt_tree *t, dmt_host *const *x, const dmt_host *out, int64_t i)
{
    return value_of(t, 0, x, out, i);
}

/* Constants alone are no business of this test: they would be computed in another type. */
static bool constant(const dmt_tree *t, int id)
{
    const dmt_tree_node *n = &t->node[id];
    if (n->kind == ARRAY || n->kind == LITERAL || n->kind == GIVEN) {
        return n->kind != ARRAY;
    }
    bool all = constant(t, n->child[0]);
    for (int k = 1; k < (n->kind == CHOOSE ? 4 : n->kind == NEGATIVE ? 1 : 2); k++) {
        bool this = constant(t, n->child[k]);
        if (n->kind == CHOOSE && k == 1 && all && this) {
            return true;
        }
        all = n->kind == CHOOSE && k == 2 ? this : all && this;
    }
    return all;
}

static bool has_constants(const dmt_tree *t)
{
    for (int id = 0; id < t->nodes; id++) {
        if (t->node[id].kind > GIVEN && constant(t, id)) {
            return true;
        }
    }
    return false;
}

dmt_tree dmt_tree_random(dmt_case *c, dm_dtype dtype)
{
    dmt_tree t;
    do {
        t = (dmt_tree){.dtype = dtype,
                       .carrier = dmt_is_float(dtype) ? (dtype == DM_F64 ? DM_F64 : DM_F32) : DM_I64};
        for (int i = 0; i < DMT_TREE_LEAVES + 2; i++) {
            double whole = (double)dmt_int(&c->random, 0, 9), value = whole + (dmt_is_float(dtype) ? 0.25 : 0);
            *(i < DMT_TREE_LEAVES ? &t.literal[i] : &t.given[i - DMT_TREE_LEAVES]) = value;
        }
        (void)grow(c, &t, (int)dmt_int(&c->random, 1, 3));
    } while (t.arrays == 0 || has_constants(&t));
    write(&t, 0);
    return t;
}

int dmt_tree_arguments(const dmt_tree *t, dmt_operand *const *x, dm_map_arg *args)
{
    static const char *const names[] = {"x0", "x1", "x2"}, *const numbers[] = {"g0", "g1"};
    int count = 0;
    for (int i = 0; i < t->arrays; i++) {
        args[count++] = (dm_map_arg)DM_ARG(names[i], x[i]->array);
    }
    for (int i = 0; i < 2; i++) {
        if (t->uses_given[i]) {
            args[count++] = dmt_is_float(t->dtype) ? (dm_map_arg)DM_NUMBER(numbers[i], t->given[i])
                                                   : (dm_map_arg)DM_INTEGER(numbers[i], (int64_t)t->given[i]);
        }
    }
    return count;
}
