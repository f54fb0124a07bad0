#ifndef DMI_EWISE_DOMAINS_H
#define DMI_EWISE_DOMAINS_H

#include <dmath/types.h>

/* Domains of the rows of ewise.def, as bits of carriers. Also compiled at run time, without what is included.
 */
enum {
    DMI_EW_BOOL = 1 << DM_BOOL,
    DMI_DOMAIN_INTEGER = 1 << DM_I32 | 1 << DM_I64 | 1 << DM_U64,
    DMI_DOMAIN_FLOAT = 1 << DM_F32 | 1 << DM_F64,
    DMI_DOMAIN_COMPLEX = 1 << DM_C64 | 1 << DM_C128,
    DMI_DOMAIN_LOGIC = DMI_EW_BOOL, /* operands are taken as bool */
    DMI_DOMAIN_BITS = DMI_EW_BOOL | DMI_DOMAIN_INTEGER,
    DMI_DOMAIN_ORDERED = DMI_DOMAIN_INTEGER | DMI_DOMAIN_FLOAT,
    DMI_DOMAIN_REAL = DMI_EW_BOOL | DMI_DOMAIN_ORDERED,
    DMI_DOMAIN_NUMERIC = DMI_DOMAIN_ORDERED | DMI_DOMAIN_COMPLEX,
    DMI_DOMAIN_FLOATC = DMI_DOMAIN_FLOAT | DMI_DOMAIN_COMPLEX,
    DMI_DOMAIN_ANY = DMI_EW_BOOL | DMI_DOMAIN_NUMERIC
};

#endif
