/* The text of the last failure of each thread. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 2048 };

static _Thread_local char error_text[TEXT_BYTES];

dm_status dmi_fail(dm_status status, const char *format, ...)
{
    /* The arguments may point into the old text ("gemm: %s" of dmi_error_text()), so it is not written over
     * before they have been read. */
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0) {
        snprintf(text, sizeof text, "%s", dmi_status_name(status));
    } else if (length >= (int)sizeof text) {
        memcpy(text + sizeof text - 4, "...", 4);
    }
    memcpy(error_text, text, strlen(text) + 1);
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
