/* Options of a session: any text is an error with words, or a configuration that says itself. */
#include "base/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = exactly(data, size, 1);
    dmi_config config;
    dm_status status = dmi_config_load(&config, text);
    HOLDS(status == DM_OK || status == DM_ERR_CONFIG);
    if (status == DM_OK) {
        char *printed = NULL;
        size_t bytes = 0;
        FILE *to = open_memstream(&printed, &bytes);
        HOLDS(to);
        dmi_config_print(&config, to);
        fclose(to);
        HOLDS(bytes > 0);
        free(printed);
    } else {
        HOLDS(dmi_error_text()[0] != 0);
    }
    free(text);
    return 0;
}
