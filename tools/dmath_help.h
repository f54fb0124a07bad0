/* The help of every subcommand, read from what it prints: manual pages and completion are made from it. */
#ifndef DMATH_TOOL_HELP_H
#define DMATH_TOOL_HELP_H

#include "dmath.h"

enum { HELP_OPTIONS = 40, HELP_COMMANDS = 40, HELP_DEPTH = 2 };

typedef struct help_option {
    char key;          /* 0: none */
    const char *name;  /* "dtype" */
    const char *value; /* "TYPE", or NULL */
    char text[1024];
} help_option;

typedef struct help_page {
    const char *path[HELP_DEPTH]; /* "bench", "gemm"; NULL behind the last */
    const char *doc;              /* from the list that names it; "" */
    char usage[512];              /* what follows "Usage: " */
    char text[4096];              /* what it does */
    int options, commands;
    help_option option[HELP_OPTIONS];
    struct help_page *command[HELP_COMMANDS];
    char *read; /* what it printed, cut into words */
} help_page;

/* The page of dmath itself, with those of all subcommands. NULL, with a complaint: a command does not say its
 * help. */
help_page *help_read(void);
void help_free(help_page *page);

#endif
