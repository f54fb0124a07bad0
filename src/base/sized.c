#include "base/sized.h"

#include <string.h>

static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size); /* the first field of each */
    return size;
}

dm_status dmi_sized_check(const void *out, size_t least, const char *what)
{
    size_t size = size_of(out);
    if (size < least || size > DMI_SIZED_MOST) {
        return dmi_fail(DM_ERR_ARG, "%s (its size is %zu, not %zu to %d)", what, size, least, DMI_SIZED_MOST);
    }
    return DM_OK;
}

dm_status dmi_sized_take(const void *given, size_t least, void *known, size_t known_bytes, const char *what)
{
    size_t size = size_of(given);
    dm_status status = dmi_sized_check(given, least, what);
    for (size_t i = known_bytes; i < size && status == DM_OK; i++) {
        if (((const unsigned char *)given)[i] != 0) {
            status =
                dmi_fail(DM_ERR_ARG,
                         "%s (its size is %zu, a newer header's, and of what this library, %zu, does not know, "
                         "byte %zu is not zero)",
                         what, size, known_bytes, i);
        }
    }
    if (status == DM_OK) {
        memset(known, 0, known_bytes);
        memcpy(known, given, DMI_MIN(size, known_bytes));
    }
    return status;
}

void dmi_sized_give(const void *known, size_t known_bytes, void *out)
{
    size_t size = size_of(out);
    memcpy(out, known, DMI_MIN(size, known_bytes));
    if (size > known_bytes) {
        memset((char *)out + known_bytes, 0, size - known_bytes);
    }
    memcpy(out, &size, sizeof size);
}
