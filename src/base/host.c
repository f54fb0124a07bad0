#include "base/base.h"

#include <stdio.h>
#include <unistd.h>

void dmi_host_name(char *out, size_t room)
{
    if (gethostname(out, room) != 0) {
        snprintf(out, room, "unknown");
    }
}
