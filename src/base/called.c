/* Which public call a thread is in. */
#include "base/base.h"
#include "base/fault.h"

static _Thread_local uint16_t called;
static _Thread_local uint64_t serial;

const char *dmi_api_name(int number)
{
    static const char *const names[] = {DMI_API_NAMES}; /* made by cmake/api_calls.cmake; number 0: NULL */
    return number >= 0 && number < DMI_COUNT(names) ? names[number] : NULL;
}

const char *dmi_api_called(void)
{
    return dmi_api_name(called);
}

uint16_t dmi_api_number(void)
{
    return called;
}

void dmi_api_begin(uint16_t number)
{
    called = number;
    dmi_memory_missed(0); /* what an earlier call went without */
    serial += number != 0;
}

uint64_t dmi_api_serial(void)
{
    return serial;
}
