/* The tokens of a prototxt file. */
#ifndef NN_SCAN_H
#define NN_SCAN_H

#include <dmath/dmath.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    NN_TOKEN_END,
    NN_TOKEN_NAME,
    NN_TOKEN_NUMBER,
    NN_TOKEN_STRING
}; /* else the character itself: '{' ':' ... */

typedef struct nn_scan {
    const char *file, *at, *end;
    int line; /* of `at` */
    int kind; /* of the current token, which has these: */
    int token_line;
    const char *text; /* a string's with its quotes */
    size_t length;
} nn_scan;

/* Reads the next token. DM_ERR_FORMAT: a character that cannot begin one, a string without end. */
dm_status nn_scan_next(nn_scan *scan);
bool nn_scan_is(const nn_scan *scan, const char *word); /* is the token this name? */
/* "FILE:LINE: expected WHAT, found the token". */
dm_status nn_scan_expected(const nn_scan *scan, const char *what);
/* The bytes that the current token, a string, stands for, added to *bytes; escapes are C's. */
dm_status nn_scan_string(const nn_scan *scan, char **bytes, size_t *length);

#endif
