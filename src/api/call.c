#include "api/call.h"
#include "master/session.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local bool handling; /* the handler runs, and is not called for what fails inside it */

/* The text is the handler's while it runs, and the caller's afterwards, whatever the handler calls. */
static void handle(const dmi_error_handler *handler, dm_status status)
{
    char *text = strdup(dmi_error_text());
    handling = true;
    handler->call(handler->context, status, text ? text : dmi_error_text());
    handling = false;
    if (text) {
        (void)dmi_fail(status, "%s", text);
    }
    free(text);
}

/* Does the text begin with the name of a call? */
static bool names_a_call(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
    return length > 0 && strncmp(text + length, ": ", 2) == 0;
}

/* What is wrong with an argument names the call, wherever it was found. So does memory that is not there, but
 * where a worker says in which command. */
static void name_call(dm_status status)
{
    const char *name = dmi_api_called();
    bool argument = status == DM_ERR_ARG || status == DM_ERR_HANDLE || status == DM_ERR_SHAPE ||
                    status == DM_ERR_DTYPE || status == DM_ERR_LAYOUT || status == DM_ERR_STATE;
    bool memory = status == DM_ERR_NOMEM && strncmp(dmi_error_text(), "command ", strlen("command ")) != 0;
    if (name && (argument || memory) && !names_a_call(dmi_error_text())) {
        (void)dmi_fail(status, "%s: %s", name, dmi_error_text());
    }
}

dm_status dmi_api_failed(const dm_session *session, dm_status status)
{
    name_call(status);
    dmi_api_begin(0);
    if (session && session->on_error.call && !handling) {
        handle(&session->on_error, status);
    }
    return status;
}

dm_status dmi_api_end_start(const dm_config *config, dm_status status)
{
    name_call(status);
    dmi_api_begin(0);
    if (status != DM_OK && !handling) {
        dmi_error_handler handler = dmi_error_handler_of(config);
        if (handler.call) {
            handle(&handler, status);
        }
    }
    return status;
}
