/* What nn/ uses of the library where it parses: keeping the text of an error. */
#include <dmath/dmath.h>

dm_status dm_error_set(dm_status status, const char *format, ...)
{
    return format[0] ? status : DM_ERR_INTERNAL;
}
