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

dm_status dmi_api_end(const dm_session *session, dm_status status)
{
    dmi_api_begin(NULL);
    if (status != DM_OK && session && session->on_error.call && !handling) {
        handle(&session->on_error, status);
    }
    return status;
}

dm_status dmi_api_end_start(const dm_config *config, dm_status status)
{
    dmi_api_begin(NULL);
    if (status != DM_OK && !handling) {
        dmi_error_handler handler = dmi_error_handler_of(config);
        if (handler.call) {
            handle(&handler, status);
        }
    }
    return status;
}
