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

dm_status dmi_cu_capture_run(dmi_stream s)
{
    dmi_emu_op *op = capture.first;
    if (capture.stream != s || !s) {
        return dmi_fail(DM_ERR_INTERNAL, "the end of a capture that has not begun");
    }
    capture.stream = NULL;
    while (op) {
        dmi_emu_op *next = op->next;
        if (!capture.broken[0]) {
            dmi_emu_put(s, op);
        } else {
            if (op->drop) {
                op->drop(op);
            }
            free(op);
        }
        op = next;
    }
    return capture.broken[0] ? dmi_fail(DM_ERR_INTERNAL, "the capture was broken by %s", capture.broken)
                             : DM_OK;
}
