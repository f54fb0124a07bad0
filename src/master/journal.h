/* A session's journal (option journal): a line of text for each public call, with its arguments, which `dmath
 * replay` runs again. The code that writes and reads the arguments of each call is made from the prototypes:
 * cmake/api_calls.cmake.
 *
 *     dmath-journal 1 4 ~8d1f2c3b                           the format, the number of workers
 *     gemm 0 0 0x1p+0 a1 a2 0x0p+0 a3 = 0 ~00c2a1b7         a call, its arguments, its status, what it made,
 * and the line's hash
 */
#ifndef DMI_JOURNAL_H
#define DMI_JOURNAL_H

#include "base/base.h"

#include <dmath/dmath.h>
#include <dmath/factors.h>
#include <dmath/group.h>
#include <dmath/program.h>

#include <stdatomic.h>

#define DMI_JOURNAL_HEAD "dmath-journal 1 "
/* Data of the caller beyond so many bytes are not kept: their hash is, and makes other data of the same type.
 */
enum { DMI_JOURNAL_DATA = 1 << 16 };

typedef struct dmi_journal dmi_journal;
extern atomic_int dmi_journals; /* that are open */
DM_CHECKED dm_status dmi_journal_open(const char *path, int workers, dmi_journal **out);
void dmi_journal_close(dmi_journal *j); /* may be NULL */
dmi_journal *dmi_journal_begin(const dm_session *session, const char *call);
/* NULL: the call is not kept. One load and a branch where there is no journal. */
static inline dmi_journal *dmi_journal_of(const dm_session *session, const char *call)
{
    return __builtin_expect(atomic_load_explicit(&dmi_journals, memory_order_relaxed) != 0, 0)
               ? dmi_journal_begin(session, call)
               : NULL;
}
/* All arguments are there: from here on the line survives the process. */
void dmi_journal_called(dmi_journal *j);
void dmi_journal_returned(dmi_journal *j, dm_status status); /* what the call has made follows */
void dmi_journal_end(dmi_journal *j);
uint32_t dmi_journal_hash(uint32_t hash, const void *bytes, size_t count); /* FNV-1a; begins with 0 */

void dmi_put_integer(dmi_journal *j, int64_t value);
void dmi_put_real(dmi_journal *j, double value);
void dmi_put_array(dmi_journal *j, dm_array a);
void dmi_put_program(dmi_journal *j, dm_program p);
void dmi_put_group(dmi_journal *j, dm_group g);
void dmi_put_factor(dmi_journal *j, dm_factor f);
void dmi_put_text(dmi_journal *j, const char *text); /* NULL is kept in this and all that follow */
void dmi_put_bytes(dmi_journal *j, const void *bytes, int64_t count);
/* A struct of options, whose first field is its size: of a program built with an older header it is smaller
 * than `known`, this library's. */
void dmi_put_sized(dmi_journal *j, const void *options, size_t known);
void dmi_put_integers(dmi_journal *j, const int64_t *value, int64_t count);
void dmi_put_ints(dmi_journal *j, const int *value, int64_t count);
void dmi_put_reals(dmi_journal *j, const double *value, int64_t count);
void dmi_put_arrays(dmi_journal *j, const dm_array *a, int64_t count);
void dmi_put_map_args(dmi_journal *j, const dm_map_arg *arg, int64_t count);
void dmi_put_layout(dmi_journal *j, const dm_layout *layout);
/* values: what values hold is kept too; false: their size alone. */
void dmi_put_items(dmi_journal *j, const dm_checkpoint_item *item, int64_t count, bool values);
/* The options of a checkpoint, and what the values hold that dm_keep has named. */
void dmi_put_checkpoint_options(dmi_journal *j, dm_session *session, const dm_checkpoint_options *options);
/* The caller's memory behind a write. extent NULL: the whole array; dtype -1: the array's; ld not 0: not kept.
 */
void dmi_put_data(dmi_journal *j, dm_session *session, dm_array a, const int64_t *extent, int dtype,
                  const void *host, int64_t ld);
int dmi_journal_ndim(dm_session *session, dm_array a); /* 0 where it is none */

#endif
