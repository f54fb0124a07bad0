/* Expressions whose names are single letters. */
#include "base/base.h"

enum { MAX_ARGS = 16 };

/* Does the letter stand in the text by itself, in no longer name? */
static bool stands(const char *text, char letter)
{
    for (const char *at = text; *at; at++) {
        bool before = at > text && at[-1] >= 'a' && at[-1] <= 'z', behind = at[1] >= 'a' && at[1] <= 'z';
        if (*at == letter && !before && !behind) {
            return true;
        }
    }
    return false;
}

dm_status nn_map(dm_session *session, const char *text, int count, const dm_map_arg *all, dm_array out)
{
    dm_map_arg args[MAX_ARGS];
    int used = 0;
    for (int i = 0; i < count && used < MAX_ARGS; i++) {
        if (stands(text, all[i].name[0])) {
            args[used++] = all[i];
        }
    }
    return dm_map(session, text, used, args, out);
}
