/* Between layout.c, which completes a layout, and explicit.c, which adds the tables of an explicit one. */
#ifndef DMI_LAYOUT_EXPLICIT_H
#define DMI_LAYOUT_EXPLICIT_H

#include "layout/layout.h"

/* Checks the spec's map, keeps a copy of it and fills first, own and own_offset. y has all else already. */
DM_CHECKED dm_status dmi_layout_take_map(const dmi_layout_spec *spec, dmi_layout *y);

#endif
