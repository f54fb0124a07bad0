/* Shared objects with operations of the user's own. */
#ifndef DMI_LAUNCH_LOAD_H
#define DMI_LAUNCH_LOAD_H

#include "base/base.h"

/* Loads each of "a.so:b.so" that this process does not have yet and calls its dmath_ops(). */
DM_CHECKED dm_status dmi_load_operations(const char *list);

#endif
