#include "api/call.h"
#include "master/session.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool handling; /* the handler runs, and is not called for what fails inside it */

/* An error's text again, behind calls that may have put theirs in its place; NULL: there was no memory for it.
 */
static void put_back(dm_status status, char *text)
{
    if (text) {
        (void)dmi_fail(status, "%s", text);
    }
    free(text);
}

/* The text is the handler's while it runs, and the caller's afterwards, whatever the handler calls. */
static void handle(const dmi_error_handler *handler, dm_status status)
{
    char *text = strdup(dmi_error_text());
    handling = true;
    handler->call(handler->context, status, text ? text : dmi_error_text());
    handling = false;
    put_back(status, text);
}

/* The text without the name of an operation before it, that of the call or of another by which the call is
 * made. */
static const char *without_name(const char *text, const char *called)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
    bool named = strlen(called) == length && strncmp(text, called, length) == 0;
    for (int op = 0; op < DMI_OPS && !named; op++) {
        named = strlen(dmi_ops[op].name) == length && strncmp(text, dmi_ops[op].name, length) == 0;
    }
    return named && strncmp(text + length, ": ", 2) == 0 ? text + length + 2 : text;
}

/* Every failure names a call: that which returns it, wherever it was found, or the one whose command has
 * failed. */
static void name_call(dm_status status)
{
    const char *name = dmi_api_called(), *text = dmi_error_text();
    int behind = 0;
    (void)!sscanf(text, "command %*u (%n", &behind);
    if (name && behind == 0) {
        (void)dmi_fail(status, "%s: %s", name, without_name(text, name));
    }
}

dm_status dmi_api_failed(uint16_t outer, const dm_session *session, dm_status status)
{
    name_call(status);
    dmi_api_begin(outer);
    if (session && session->on_error.call && !handling) {
        handle(&session->on_error, status);
    }
    return status;
}

dm_status dmi_api_end_start(uint16_t outer, const dm_config *config, dm_status status)
{
    if (status != DM_OK) {
        name_call(status);
    }
    dmi_api_begin(outer);
    if (status != DM_OK && !handling) {
        char *text = strdup(dmi_error_text());
        dmi_error_handler handler = dmi_error_handler_of(config); /* complains of a wrong config once more */
        put_back(status, text);
        if (handler.call) {
            handle(&handler, status);
        }
    }
    return status;
}
