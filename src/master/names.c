/* Public names of statuses, types and the version. */
#include "base/base.h"
#include "base/fault.h"

#include <dmath/dmath.h>

const char *dm_status_name(dm_status status)
{
    return dmi_status_name(status);
}

const char *dm_status_text(dm_status status)
{
    switch (status) {
#define X(code, name, text)                                                                                    \
    case DM_##name:                                                                                            \
        return text;
        DM_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

const char *dm_error_message(void)
{
    return dmi_error_text();
}

dm_status dm_error_set(dm_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dmi_fail_list(status, format, args);
    va_end(args);
    return status;
}

dm_status dm_error_no_memory(const char *what, size_t bytes)
{
    dmi_memory_missed(bytes);
    return dmi_fail(DM_ERR_NOMEM, "no memory for %s", what ? what : "a library on top of dmath");
}

#define TEXT(x) #x
#define VERSION(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)

const char *dm_version(void)
{
    return VERSION(DM_VERSION_MAJOR, DM_VERSION_MINOR, DM_VERSION_PATCH);
}

int64_t dm_dtype_bytes(dm_dtype dtype)
{
    return dmi_dtype_bytes(dtype);
}

const char *dm_dtype_name(dm_dtype dtype)
{
    return dmi_dtype_name(dtype);
}
