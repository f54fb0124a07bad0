/* Layouts for layers. */
#include "base/base.h"

#include <dmath/layers.h>

dm_layout dm_layout_batch(const dm_session *session, int64_t samples, int slices)
{
    dm_layout layout = dm_layout_rows(session);
    if (slices > 0 && samples > 0) {
        layout.block[0] = (samples + slices - 1) / slices;
    }
    return layout;
}
