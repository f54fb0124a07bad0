/* The text of the last failure of each thread. */
#include "base/base.h"
#include "base/fault.h"
#include "base/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 2048 };

static _Thread_local char error_text[TEXT_BYTES];
static _Thread_local size_t
    missed; /* bytes of the allocation that has failed, until an error has named them; 0: none */

void dmi_memory_missed(size_t bytes)
{
    missed = bytes;
}

/* Behind the text of an error for want of host memory: what was asked for, what is free, and what this process
 * has. */
static void add_memory(char *text, size_t room)
{
    size_t length = strlen(text);
    dmi_process_memory m;
    dmi_process_memory_now(&m);
    length += (size_t)snprintf(text + length, room - length,
                               "; %zu bytes were asked for, %" PRId64 " of the host's %" PRId64
                               " are free, this process has %" PRId64,
                               missed, m.free, m.total, m.resident);
    if (m.most >= 0 && length < room) {
        snprintf(text + length, room - length,
                 ", and %" PRId64 " of at most %" PRId64 " bytes of addresses (ulimit -v)", m.addresses,
                 m.most);
    }
    missed = 0;
}

dm_status dmi_fail_list(dm_status status, const char *format, va_list args)
{
    /* The arguments may point into the old text ("gemm: %s" of dmi_error_text()), so it is not written over
     * before they have been read. */
    char text[TEXT_BYTES];
    int length = vsnprintf(text, sizeof text, format, args);
    if (length < 0) {
        snprintf(text, sizeof text, "%s", dmi_status_name(status));
    } else if (length >= (int)sizeof text) {
        memcpy(text + sizeof text - 4, "...", 4);
    }
    if (status == DM_ERR_NOMEM && missed) {
        add_memory(text, sizeof text);
    }
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}

dm_status dmi_fail(dm_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dmi_fail_list(status, format, args);
    va_end(args);
    return status;
}

const char *dmi_error_text(void)
{
    return error_text;
}

const char *dmi_status_name(dm_status status)
{
    switch (status) {
#define X(code, name, text)                                                                                    \
    case DM_##name:                                                                                            \
        return #name;
        DM_STATUS_MAP(X)
#undef X
    }
    return "?";
}
