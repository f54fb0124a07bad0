/* Ranges by NVTX, whose C interface is headers alone: they look for a tool when they are first called. */
#include "device/runtime.h"

#ifdef DMATH_WITH_NVTX

#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>

struct dmi_cu_ranges {
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t name[];
};

dmi_cu_ranges *dmi_cu_ranges_create(const char *domain, const char *const *names, int count)
{
    nvtxDomainHandle_t handle = nvtxDomainCreateA(domain);
    dmi_cu_ranges *r = handle ? malloc(sizeof *r + (size_t)count * sizeof *r->name) : NULL;
    if (r) {
        r->domain = handle;
        for (int i = 0; i < count; i++) {
            r->name[i] = nvtxDomainRegisterStringA(handle, names[i]);
        }
    } else if (handle) {
        nvtxDomainDestroy(handle);
    }
    return r;
}

void dmi_cu_ranges_destroy(dmi_cu_ranges *r)
{
    if (r) {
        nvtxDomainDestroy(r->domain);
        free(r);
    }
}

void dmi_cu_range_push(const dmi_cu_ranges *r, int name, uint64_t number)
{
    nvtxEventAttributes_t a = {.version = NVTX_VERSION,
                               .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                               .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                               .payload.ullValue = number,
                               .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                               .message.registered = r->name[name]};
    (void)nvtxDomainRangePushEx(r->domain, &a);
}

void dmi_cu_range_pop(const dmi_cu_ranges *r)
{
    (void)nvtxDomainRangePop(r->domain);
}

#else /* a toolkit without its headers: no tool can listen */

dmi_cu_ranges *dmi_cu_ranges_create(const char *domain, const char *const *names, int count)
{
    (void)domain;
    (void)names;
    (void)count;
    return NULL;
}

void dmi_cu_ranges_destroy(dmi_cu_ranges *r)
{
    (void)r;
}

void dmi_cu_range_push(const dmi_cu_ranges *r, int name, uint64_t number)
{
    (void)r;
    (void)name;
    (void)number;
}

void dmi_cu_range_pop(const dmi_cu_ranges *r)
{
    (void)r;
}

#endif
