/* Timeline of steps in Chrome's trace format. */
#include "exec/engine.h"

void dmi_trace_step(dmi_engine *e, const dmi_work *w, int64_t begin_ns, int64_t end_ns)
{
    (void)e;
    (void)w;
    (void)begin_ns;
    (void)end_ns;
}
