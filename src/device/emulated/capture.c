/* Captures: operations are kept until the capture ends. As strict as CUDA's in the mode in which the calls of
 * other threads do not matter: what allocates, waits or asks how far a device is breaks the capture. */
#include "device/emulated/emulated.h"

#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct {
    dmi_emu_stream *stream; /* NULL: nothing is captured */
    dmi_emu_op *first, *last;
    char broken[96]; /* by which call; "": by none */
} capture;

bool dmi_emu_keep(dmi_emu_stream *s, dmi_emu_op *op)
{
    if (capture.stream != s || !s) {
        return false;
    }
    op->next = NULL;
    if (capture.last) {
        capture.last->next = op;
    } else {
        capture.first = op;
    }
    capture.last = op;
    return true;
}

dm_status dmi_emu_refuse(const dmi_emu_stream *s, const char *call)
{
    if (!capture.stream || (s && s != capture.stream)) {
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
    capture.first = capture.last = NULL;
    capture.broken[0] = 0;
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
    capture.stream = NULL;
    dmi_graph *graph = capture.broken[0] ? NULL : calloc(1, sizeof *graph);
    if (!graph) {
        free_ops(capture.first);
        return capture.broken[0] ? dmi_fail(DM_ERR_INTERNAL, "the capture was broken by %s", capture.broken)
                                 : dmi_fail(DM_ERR_NOMEM, "no memory for a graph");
    }
    dmi_emu_may_wait();
    atomic_init(&graph->references, 1);
    graph->first = capture.first;
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
