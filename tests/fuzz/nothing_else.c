/* What nn/ uses of the library where it parses: keeping the texts of errors. Files that it writes go nowhere.
 */
#include <dmath/dmath.h>

dm_status dm_error_set(dm_status status, const char *format, ...)
{
    return format[0] ? status : DM_ERR_INTERNAL;
}

dm_status dm_error_no_memory(const char *what, size_t bytes)
{
    return what && bytes > 0 ? DM_ERR_NOMEM : DM_ERR_INTERNAL;
}

const char *dm_error_message(void)
{
    return "";
}

dm_status dm_file_begin(const char *path, dm_file **out)
{
    return path && out ? DM_ERR_UNSUPPORTED : DM_ERR_INTERNAL;
}

const char *dm_file_path(const dm_file *file)
{
    return file ? "" : NULL;
}

dm_status dm_file_finish(dm_file *file)
{
    return file ? DM_ERR_UNSUPPORTED : DM_ERR_INTERNAL;
}

void dm_file_drop(dm_file *file)
{
    (void)file;
}
