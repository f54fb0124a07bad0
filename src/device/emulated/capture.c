/* Captures: operations are kept until the capture ends. As strict as CUDA's in the mode in which the calls of
 * other threads do not matter: what allocates, waits or asks how far a device is breaks the capture. What is
 * captured of a second stream comes as late as it may: where the first follows it. */
#include "device/emulated/emulated.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct op_list {
    dmi_emu_op *first, *last;
} op_list;

static _Thread_local struct {
    dmi_emu_stream *stream; /* NULL: nothing is captured */
    dmi_emu_stream *second; /* NULL: that one alone */
    op_list ops, late;      /* late: of the second stream */
    char broken[96];        /* by which call; "": by none */
} capture;

/* more: a list, or one operation */
static void append(op_list *list, op_list more)
{
    if (!more.first) {
        return;
    }
    if (list->last) {
        list->last->next = more.first;
    } else {
        list->first = more.first;
    }
    list->last = more.last;
}

static bool is_captured(const dmi_emu_stream *s)
{
    return s && (s == capture.stream || s == capture.second);
}

bool dmi_emu_keep(dmi_emu_stream *s, dmi_emu_op *op)
{
    if (is_captured(s)) {
        op->next = NULL;
        append(s == capture.stream ? &capture.ops : &capture.late, (op_list){op, op});
    }
    return is_captured(s);
}

dm_status dmi_emu_refuse(const dmi_emu_stream *s, const char *call)
{
    if (!capture.stream || (s && !is_captured(s))) {
        return DM_OK;
    }
    if (!capture.broken[0]) {
        snprintf(capture.broken, sizeof capture.broken, "%s", call);
    }
    return dmi_fail(DM_ERR_INTERNAL, "%s cannot be captured", call);
}

dm_status dmi_cu_capture_begin(dmi_stream s)
{
    if (capture.stream) {
        return dmi_fail(DM_ERR_INTERNAL, "a capture within a capture");
    }
    capture.stream = s;
    capture.second = NULL;
    capture.ops = capture.late = (op_list){NULL, NULL};
    capture.broken[0] = 0;
    return DM_OK;
}

dm_status dmi_cu_capture_mark(dmi_event e, dmi_stream s)
{
    if (!is_captured(s)) {
        return dmi_fail(DM_ERR_INTERNAL, "a mark on a stream that is not captured");
    }
    dmi_emu_event_capture(e, s == capture.second ? capture.late.last : NULL);
    return DM_OK;
}

dm_status dmi_cu_capture_after(dmi_stream s, dmi_event e)
{
    if (!capture.stream || (s != capture.stream && capture.second && s != capture.second)) {
        return dmi_fail(DM_ERR_INTERNAL, "neither stream is captured");
    }
    if (s != capture.stream) {
        capture.second = s;
        return DM_OK;
    }
    const dmi_emu_op *last = dmi_emu_event_captured(e);
    for (const dmi_emu_op *op = capture.late.first; op && last; op = op->next) {
        if (op == last) { /* up to here they come now; of others that are late they came before */
            op_list rest = {op->next, op->next ? capture.late.last : NULL};
            append(&capture.ops, (op_list){capture.late.first, (dmi_emu_op *)op});
            capture.ops.last->next = NULL;
            capture.late = rest;
            break;
        }
    }
    return DM_OK;
}

struct dmi_graph {
    atomic_int references; /* its owner, and streams that have yet to run it */
    dmi_emu_op *first;
};

static void free_ops(dmi_emu_op *op)
{
    while (op) {
        dmi_emu_op *next = op->next;
        if (op->drop) {
            op->drop(op);
        }
        free(op);
        op = next;
    }
}

dm_status dmi_cu_capture_end(dmi_stream s, dmi_graph **out)
{
    if (capture.stream != s || !s) {
        return dmi_fail(DM_ERR_INTERNAL, "the end of a capture that has not begun");
    }
    if (capture.late.first && !capture.broken[0]) {
        snprintf(capture.broken, sizeof capture.broken, "a stream that none follows");
    }
    append(&capture.ops, capture.late);
    capture.stream = capture.second = NULL;
    dmi_graph *graph = capture.broken[0] ? NULL : calloc(1, sizeof *graph);
    if (!graph) {
        free_ops(capture.ops.first);
        return capture.broken[0] ? dmi_fail(DM_ERR_INTERNAL, "the capture was broken by %s", capture.broken)
                                 : dmi_fail(DM_ERR_NOMEM, "no memory for a graph");
    }
    dmi_emu_may_wait();
    atomic_init(&graph->references, 1);
    graph->first = capture.ops.first;
    *out = graph;
    return DM_OK;
}

void dmi_cu_graph_destroy(dmi_graph *graph)
{
    if (graph && atomic_fetch_sub(&graph->references, 1) == 1) {
        free_ops(graph->first);
        free(graph);
    }
}

typedef struct graph_op {
    dmi_emu_op op;
    dmi_graph *graph;
} graph_op;

static void run_graph(dmi_emu_stream *s, dmi_emu_op *op)
{
    for (dmi_emu_op *at = ((graph_op *)op)->graph->first; at; at = at->next) {
        if (at->run) {
            at->run(s, at);
        }
    }
}

static void drop_graph(dmi_emu_op *op)
{
    dmi_cu_graph_destroy(((graph_op *)op)->graph);
}

dm_status dmi_cu_graph_upload(dmi_graph *graph, dmi_stream s)
{
    (void)graph, (void)s;
    return DM_OK;
}

dm_status dmi_cu_graph_launch(dmi_graph *graph, dmi_stream s)
{
    graph_op *op = dmi_emu_op_new(sizeof *op);
    if (!op) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the launch of a graph");
    }
    *op = (graph_op){.op = {.run = run_graph, .drop = drop_graph}, .graph = graph};
    atomic_fetch_add(&graph->references, 1);
    dmi_emu_put(s, &op->op);
    return DM_OK;
}
