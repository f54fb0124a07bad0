#include "base/plain.h"

#include <stdlib.h>

/* glibc has the locale C in its own memory: nothing is allocated. */
void dmi_plain_enter(dmi_plain *held)
{
    held->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    held->before = uselocale(held->plain); /* 0: leaves it as it is */
}

void dmi_plain_leave(const dmi_plain *held)
{
    uselocale(held->before);
    if (held->plain) {
        freelocale(held->plain);
    }
}

double dmi_plain_real(const char *text, char **end)
{
    dmi_plain held;
    dmi_plain_enter(&held);
    double value = strtod(text, end);
    dmi_plain_leave(&held);
    return value;
}
