#include "support/cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static dmt_operand *new_operand(dmt_case *c, const char *name, const dmt_host *value)
{
    dmt_operand *o = dmt_alloc(&c->scratch, sizeof *o);
    o->name = name;
    o->value = dmt_host_copy(&c->scratch, value);
    o->between = DM_NO_ARRAY;
    o->next = c->operands;
    c->operands = o;
    return o;
}

static void say_operand(dmt_case *c, const dmt_operand *o, const char *layout)
{
    char shape[160], base[160], lo[160], step[160];
    dmt_say(c, "\n    %s: %s %s", o->name, dmt_name(o->value->dtype),
            dmt_shape_text(o->value->ndim, o->value->shape, shape));
    if (o->view) {
        dmt_say(c, " view at %s, steps %s%s of %s", dmt_shape_text(o->value->ndim, o->lo, lo),
                dmt_shape_text(o->value->ndim, o->step, step), o->between.id ? " (twice)" : "",
                dmt_shape_text(o->base_value->ndim, o->base_value->shape, base));
    } else if (o->reshaped) {
        dmt_say(c, " reshaped from %s", dmt_shape_text(o->base_value->ndim, o->base_value->shape, base));
    }
    dmt_say(c, "%s, %s", o->unset ? " never written" : "", layout);
}

static void create_base(dmt_case *c, dmt_operand *o, const dm_layout *layout)
{
    const dmt_host *h = o->base_value;
    dm_status status = dm_array_create(c->session, h->dtype, h->ndim, h->shape, layout, &o->base);
    if (status != DM_OK) {
        char shape[160];
        o->base = DM_NO_ARRAY;
        dmt_fail(c, "creating %s %s %s, %s: %s %s", o->name, dmt_name(h->dtype),
                 dmt_shape_text(h->ndim, h->shape, shape), o->layout.text, dm_status_name(status),
                 dm_error_message());
    }
    o->array = o->base;
    if (!o->unset) {
        DMT_OK(c, dm_array_write(c->session, o->base, NULL, NULL, dmt_host_pack(&c->scratch, h), 0));
    }
}

/* The part's elements at lo, lo + step, ... of h. */
static void put_stepped(dmt_host *h, const int64_t *lo, const int64_t *step, const dmt_host *part)
{
    int64_t index[DM_MAX_DIMS] = {0}, at[DM_MAX_DIMS];
    for (int64_t i = 0; i < part->count; i++) {
        for (int d = 0; d < h->ndim; d++) {
            at[d] = lo[d] + index[d] * step[d];
        }
        h->v[dmt_linear(h->ndim, h->shape, at)] = part->v[i];
        dmt_next(part->ndim, part->shape, index);
    }
}

/* Room before and behind one dim of a view. *left: how many times as many elements the base may still have. */
static void pick_room(dmt_random *r, int64_t extent, int64_t *left, int64_t *before, int64_t *after)
{
    *before = dmt_int(r, 0, dmt_chance(r, 15) ? 20 : 3);
    *after = dmt_int(r, 0, 3);
    int64_t least = extent > 0 ? extent : 1;
    int64_t growth = (*before + extent + *after + least - 1) / least;
    if (growth > *left) {
        *before = *after = 0;
        return;
    }
    *left /= growth > 0 ? growth : 1;
}

/* A rectangle of a larger array, sometimes through a rectangle between the two, sometimes with steps. */
static void make_view(dmt_case *c, dmt_operand *o, int flags)
{
    dmt_random *r = &c->random;
    int ndim = o->value->ndim;
    int64_t shape[DM_MAX_DIMS], outer_lo[DM_MAX_DIMS], outer[DM_MAX_DIMS], inner_lo[DM_MAX_DIMS];
    bool twice = dmt_chance(r, 25), stepped = dmt_chance(r, 40) && !(flags & DMT_NO_STEPS);
    int64_t left = 2 + 4000 / (o->value->count + 1);
    for (int d = 0; d < ndim; d++) {
        int64_t before, after, step = stepped ? dmt_int(r, 1, 4) : 1;
        step = step > left ? 1 : step;
        left /= step;
        int64_t span = o->value->shape[d] > 0 ? (o->value->shape[d] - 1) * step + 1 : 0;
        pick_room(r, span, &left, &before, &after);
        inner_lo[d] = twice ? dmt_int(r, 0, before) : before;
        outer_lo[d] = twice ? before - inner_lo[d] : 0;
        outer[d] = inner_lo[d] + span + (twice ? dmt_int(r, 0, after) : after);
        shape[d] = before + span + after;
        o->lo[d] = before;
        o->step[d] = step;
    }
    o->view = true;
    o->base_value = dmt_host_make(&c->scratch, o->value->dtype, ndim, shape);
    dmt_host_random(o->base_value, r, DMT_SMOOTH);
    put_stepped(o->base_value, o->lo, o->step, o->value);
    dmt_layout_random(&o->layout, &c->scratch, r, c->session, ndim, shape);
    create_base(c, o, o->layout.use);
    if (twice) {
        DMT_OK(c, dm_array_view(c->session, o->base, outer_lo, outer, &o->between));
    }
    dm_array of = twice ? o->between : o->base;
    if (stepped) {
        DMT_OK(c, dm_array_slice(c->session, of, inner_lo, o->value->shape, o->step, &o->array));
    } else {
        DMT_OK(c, dm_array_view(c->session, of, inner_lo, o->value->shape, &o->array));
    }
}

/* The same elements under another shape; false where the layout does not allow it. */
static bool make_reshaped(dmt_case *c, dmt_operand *o)
{
    int64_t shape[2] = {o->value->count, 1};
    int ndim = 1;
    if (o->value->ndim > 1 && dmt_chance(&c->random, 50)) {
        shape[0] = o->value->shape[0];
        shape[1] = dmt_count(o->value->ndim - 1, o->value->shape + 1);
        ndim = 2;
    }
    o->base_value = dmt_host_make(&c->scratch, o->value->dtype, ndim, shape);
    memcpy(o->base_value->v, o->value->v, (size_t)o->value->count * sizeof *o->value->v);
    dmt_layout_random(&o->layout, &c->scratch, &c->random, c->session, ndim, shape);
    create_base(c, o, o->layout.use);
    dm_status status = dm_array_reshape(c->session, o->base, o->value->ndim, o->value->shape, &o->array);
    if (status == DM_ERR_UNSUPPORTED) {
        DMT_OK(c, dm_array_destroy(c->session, o->base));
        o->base = DM_NO_ARRAY;
        return false;
    }
    dmt_status_is(c, status, DM_OK, "dm_array_reshape");
    o->reshaped = true;
    return true;
}

static void make_whole(dmt_case *c, dmt_operand *o)
{
    o->base_value = dmt_host_copy(&c->scratch, o->value);
    dmt_layout_random(&o->layout, &c->scratch, &c->random, c->session, o->value->ndim, o->value->shape);
    create_base(c, o, o->layout.use);
}

dmt_operand *dmt_operand_make(dmt_case *c, const char *name, const dmt_host *value, int flags)
{
    dmt_operand *o = new_operand(c, name, value);
    int64_t pick = dmt_int(&c->random, 0, 99);
    bool may_view = !(flags & DMT_NO_VIEW) && value->ndim > 0;
    if (may_view && pick < 35) {
        make_view(c, o, flags);
    } else if (!(may_view && pick < 45 && make_reshaped(c, o))) {
        o->unset = (flags & DMT_UNSET) && dmt_chance(&c->random, 20);
        make_whole(c, o);
    }
    say_operand(c, o, o->layout.text);
    return o;
}

dmt_operand *dmt_operand_plain(dmt_case *c, const char *name, const dmt_host *value, const dm_layout *layout,
                               const char *layout_text)
{
    dmt_operand *o = new_operand(c, name, value);
    o->base_value = dmt_host_copy(&c->scratch, value);
    snprintf(o->layout.text, sizeof o->layout.text, "%s", layout_text);
    if (layout) {
        o->layout.layout = *layout;
        o->layout.use = &o->layout.layout;
    }
    create_base(c, o, layout);
    say_operand(c, o, layout_text);
    return o;
}

dmt_host *dmt_read(dmt_case *c, dm_array a, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    void *bytes = dmt_alloc(&c->scratch, h->count * dmt_bytes(dtype));
    DMT_OK(c, dm_array_read(c->session, a, NULL, NULL, bytes, 0));
    dmt_host_unpack(h, bytes);
    return h;
}

static dmt_host *read_like(dmt_case *c, dm_array a, const dmt_host *h)
{
    return dmt_read(c, a, h->dtype, h->ndim, h->shape);
}

/* Reading shows one replica. A copy to a single worker takes what that worker holds itself, so it shows its. */
static void check_replicas(dmt_case *c, const dmt_operand *o, const dmt_host *got)
{
    char text[400];
    if (!o->layout.use || o->layout.layout.kind != 0 || o->layout.layout.replicas < 2) {
        return;
    }
    for (int w = 0; w < c->workers; w++) {
        dm_layout single = dm_layout_single(w);
        dm_array there;
        DMT_OK(c, dm_array_create(c->session, got->dtype, got->ndim, got->shape, &single, &there));
        DMT_OK(c, dm_copy(c->session, o->base, there));
        dmt_host *copy = read_like(c, there, got);
        DMT_OK(c, dm_array_destroy(c->session, there));
        if (!dmt_host_same(copy, got, text, sizeof text)) {
            dmt_fail(c, "%s: worker %d sees other elements than a read: %s", o->name, w, text);
        }
    }
}

/* Reads the array both through the base and as the op saw it; returns the latter. */
static dmt_host *read_checked(dmt_case *c, dmt_operand *o, const dmt_host *want)
{
    char text[400];
    dmt_host *got = read_like(c, o->array, want);
    dmt_host *base = o->view || o->reshaped ? read_like(c, o->base, o->base_value) : got;
    check_replicas(c, o, base);
    dmt_host *expected = dmt_host_copy(&c->scratch, o->base_value);
    if (o->view) {
        put_stepped(expected, o->lo, o->step, got);
    } else {
        memcpy(expected->v, got->v, (size_t)got->count * sizeof *got->v);
    }
    if (!dmt_host_same(base, expected, text, sizeof text)) {
        dmt_fail(c, "%s: outside the view, or read through it: %s", o->name, text);
    }
    o->base_value = base;
    o->unset = false;
    return got;
}

void dmt_operand_check(dmt_case *c, dmt_operand *o, const dmt_host *want, const dmt_host *bound)
{
    char text[400];
    dmt_host *got = read_checked(c, o, want);
    if (!dmt_host_within(got, want, bound, text, sizeof text)) {
        dmt_fail(c, "%s: %s", o->name, text);
    }
    o->value = got;
}

void dmt_operand_check_same(dmt_case *c, dmt_operand *o, const dmt_host *want)
{
    char text[400];
    dmt_host *got = read_checked(c, o, want);
    if (!dmt_host_same(got, want, text, sizeof text)) {
        dmt_fail(c, "%s: %s", o->name, text);
    }
    o->value = got;
}

void dmt_operand_unchanged(dmt_case *c, dmt_operand *o)
{
    if (!o->unset) {
        dmt_operand_check_same(c, o, o->value);
    }
}
