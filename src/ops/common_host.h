/* The caller's side of read and write: a rectangle of host memory. */
#ifndef DMI_OPS_COMMON_HOST_H
#define DMI_OPS_COMMON_HOST_H

#include "ops/common.h"

/* The whole public call of read and write: checks, a view of the rectangle where one is named, the transfer. until_ns: as
 * dmi_call_wait_until. */
DM_CHECKED dm_status dmi_host_transfer(dm_session *session, int op, dm_array a, const int64_t *lo, const int64_t *extent,
                                       void *host, int64_t ld, int64_t until_ns);
/* Checks that do not depend on ld: may data move now, are lo and extent both given, is there memory? */
DM_CHECKED dm_status dmi_host_check_call(const dmi_session *s, const char *call, const dmi_desc *a, const int64_t *lo,
                                         const int64_t *extent, const void *host);
/* Is ld at least a row of a, and small enough for any memory of that type? */
DM_CHECKED dm_status dmi_host_check_ld(const char *call, const dmi_desc *a, dm_dtype dtype, int64_t ld);
/* Host memory as a region: all indices, strides by ld. */
void dmi_host_region(const dmi_call *call, dmi_region *out);
dmi_ref dmi_ref_user(int mode);
DM_CHECKED dm_status dmi_host_check(const dmi_call *call);

#endif
