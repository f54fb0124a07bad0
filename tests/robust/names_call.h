/* Does a message name the public call? */
#ifndef NAMES_CALL_H
#define NAMES_CALL_H

#include "base/base.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* "gemm: " or "command 12 (gemm)". Operations have other names. */
static inline bool names_call(const char *text)
{
    int named = 0;
    const char *behind = ": ";
    if (sscanf(text, "command %*d (%n", &named) == 0 && named > 0) {
        text += named;
        behind = ")";
    }
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
    bool is = false;
    for (int i = 1; dmi_api_name(i) && !is; i++) {
        is = strlen(dmi_api_name(i)) == length && strncmp(text, dmi_api_name(i), length) == 0;
    }
    return is && strncmp(text + length, behind, strlen(behind)) == 0;
}

#endif
