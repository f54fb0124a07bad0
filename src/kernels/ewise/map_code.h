/* Machine code of compiled programs on disk, for later processes. A file that is not whole counts as none. */
#ifndef DMI_MAP_CODE_H
#define DMI_MAP_CODE_H

#include "base/base.h"

/* What the code was made from and for: whoever asks for the same gets the same. */
typedef struct dmi_code_key {
    uint64_t half[2];
} dmi_code_key;
/* Of a source, and of what else decides on the code: "sm_90, NVRTC 13.0". */
dmi_code_key dmi_code_key_of(const char *source, const char *made_by);

/* folder "": $XDG_CACHE_HOME/dmath, or $HOME/.cache/dmath. False: there is none, or no room for its name. */
bool dmi_code_folder(const char *folder, char *out, size_t room);
/* To be freed; NULL: there is none. */
void *dmi_code_read(const char *folder, dmi_code_key key, size_t *bytes);
/* Makes the folder where it is not there. False: it could not be written, and nothing is left. */
bool dmi_code_write(const char *folder, dmi_code_key key, const void *code, size_t bytes);

#endif
