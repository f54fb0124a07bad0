/* What nn/ uses of the library where it parses: keeping the texts of errors. */
#include <dmath/dmath.h>

dm_status dm_error_set(dm_status status, const char *format, ...)
{
    return format[0] ? status : DM_ERR_INTERNAL;
}

dm_status dm_error_no_memory(const char *what, size_t bytes)
{
    return what && bytes > 0 ? DM_ERR_NOMEM : DM_ERR_INTERNAL;
}
