/* The text of the last failure of each thread. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 2048 };

static _Thread_local char error_text[TEXT_BYTES];

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
