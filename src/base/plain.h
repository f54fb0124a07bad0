/* Numbers in files and in options have a decimal point, whatever locale the program has set. */
#ifndef DMI_PLAIN_H
#define DMI_PLAIN_H

#include <locale.h>

/* Between these two calls the thread prints and reads numbers so. */
typedef struct dmi_plain {
    locale_t before, plain; /* plain: NULL where there was no memory for it */
} dmi_plain;
void dmi_plain_enter(dmi_plain *held);
void dmi_plain_leave(const dmi_plain *held);
/* strtod, so. */
double dmi_plain_real(const char *text, char **end);

#endif
