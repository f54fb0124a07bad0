/* The name of the transport between two endpoints. */
#include "exec/gpu/parts.h"

const char *dmi_engine_transport(const dmi_engine *e, int peer)
{
    bool messages = e->peer[peer].transport == &dmi_transport_mpi;
    if (!e->gpu) {
        return e->peer[peer].transport->name;
    }
    if (dmi_gpu_direct(e, peer)) {
        return e->config.one_space ? "direct" : "ipc";
    }
    if (dmi_gpu_far(e, peer)) {
        return "cuda_mpi";
    }
    return messages ? "staged mpi" : "staged direct";
}
