/* One value of the configuration: from text and to text. */
#ifndef DMI_CONFIG_VALUE_H
#define DMI_CONFIG_VALUE_H

#include "base/config.h"

enum dmi_config_type {
    DMI_CONFIG_INT,
    DMI_CONFIG_BYTES,
    DMI_CONFIG_DOUBLE,
    DMI_CONFIG_BOOL,
    DMI_CONFIG_ENUM,
    DMI_CONFIG_STRING
};

typedef struct dmi_config_row {
    const char *key;
    int type;
    size_t offset; /* of the field in dmi_config */
    const char *standard, *names, *doc; /* names: of ENUM; of STRING its forms */
    int64_t lo, hi;     /* INT, BYTES */
    double least, most; /* DOUBLE */
} dmi_config_row;

/* False when the text, of `bytes` bytes, is not a value of the row; then nothing is written. */
bool dmi_config_parse(const dmi_config_row *row, const char *text, int64_t bytes, dmi_config *out);
/* The value as one would write it. */
void dmi_config_show(const dmi_config_row *row, const dmi_config *config, char out[DMI_CONFIG_TEXT]);
/* "a whole number from 0 to 9", "one of auto, direct, mpi", ... */
void dmi_config_accepts(const dmi_config_row *row, char out[DMI_CONFIG_TEXT]);

#endif
