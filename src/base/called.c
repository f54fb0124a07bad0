/* Which public call a thread is in. */
#include "base/base.h"

static _Thread_local const char *called;

const char *dmi_api_called(void)
{
    return called;
}

void dmi_api_begin(const char *name)
{
    called = name;
}
