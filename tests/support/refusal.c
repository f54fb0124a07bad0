#include "support/refusal.h"

#include <ctype.h>
#include <string.h>

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool ends = !(isalnum((unsigned char)at[length]) || at[length] == '_');
        if (begins && ends) {
            return true;
        }
    }
    return false;
}

void dmt_refused(dmt_case *c, dm_status got, unsigned wanted, const char *word, const char *call)
{
    if (got == DM_OK || !(wanted >> got & 1)) {
        print_error("%s gave %s: %s\n", call, dm_status_name(got), got == DM_OK ? "-" : dm_error_message());
        c->wrong++;
    } else if (word && !has_word(dm_error_message(), word)) {
        print_error("%s: the message does not name %s: %s\n", call, word, dm_error_message());
        c->wrong++;
    }
}

dm_array dmt_thing_make(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dm_array a;
    DMT_OK(c, dm_array_create(c->session, dtype, ndim, shape, NULL, &a));
    DMT_OK(c, dm_fill_arange(c->session, a, 1, 1));
    return a;
}

dmt_things dmt_things_make(dmt_case *c)
{
    const int64_t matrix[] = {6, 5}, wide[] = {6, 7}, row[] = {5}, cube[] = {2, 3, 4};
    dmt_things t = {
        .f = dmt_thing_make(c, DM_F32, 2, matrix),
        .g = dmt_thing_make(c, DM_F32, 2, matrix),
        .wide = dmt_thing_make(c, DM_F32, 2, wide),
        .row = dmt_thing_make(c, DM_F32, 1, row),
        .whole = dmt_thing_make(c, DM_I32, 2, matrix),
        .byte = dmt_thing_make(c, DM_U8, 2, matrix),
        .cube = dmt_thing_make(c, DM_F64, 3, cube),
    };
    return t;
}

void dmt_thing_end(dmt_case *c, dm_array a, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_read(c, a, dtype, ndim, shape);
    for (int64_t i = 0; i < h->count; i++) {
        if (h->v[i] != (long double)(i + 1)) {
            dmt_fail(c, "a refused call changed element %d of an array of %s to %Lg", (int)i, dmt_name(dtype),
                     h->v[i]);
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
}

void dmt_things_end(dmt_case *c, dmt_things *t)
{
    const int64_t matrix[] = {6, 5}, wide[] = {6, 7}, row[] = {5}, cube[] = {2, 3, 4};
    DMT_OK(c, dm_sync(c->session));
    dmt_thing_end(c, t->f, DM_F32, 2, matrix);
    dmt_thing_end(c, t->g, DM_F32, 2, matrix);
    dmt_thing_end(c, t->wide, DM_F32, 2, wide);
    dmt_thing_end(c, t->row, DM_F32, 1, row);
    dmt_thing_end(c, t->whole, DM_I32, 2, matrix);
    dmt_thing_end(c, t->byte, DM_U8, 2, matrix);
    dmt_thing_end(c, t->cube, DM_F64, 3, cube);
}
