/* The descriptors of standard input, output and error, where the program has closed them. */
#ifndef DMI_DESCRIPTORS_H
#define DMI_DESCRIPTORS_H

#include <stdio.h>

/* Else the next file that is opened would be one of them, and what is written to standard output or error would
 * go into it. Those of the three that are closed become /dev/null, and stay it. */
void dmi_standard_taken(void);
/* The same file above the three, where it is one of them (there is no /dev/null, or the program has just closed
 * it). -1, NULL: as given, or failed, with errno. */
int dmi_above_standard(int file);
FILE *dmi_above_standard_file(FILE *file, const char *how);

#endif
