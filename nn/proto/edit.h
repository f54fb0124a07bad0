/* Fields of a message by their paths, as calls of a program set them: "convolution_param.num_output",
 * "param[1].lr_mult". */
#ifndef NN_EDIT_H
#define NN_EDIT_H

#include "proto/message.h"

/* Who sets which field, for messages; layer NULL: a field of the net or solver itself. */
typedef struct nn_edit {
    const char *call, *layer, *path;
} nn_edit;

/* Text, or numbers; list: the field must be one that may be repeated. */
typedef struct nn_given {
    const char *text;
    const double *numbers;
    int64_t count;
    bool list;
} nn_given;

/* The field has this value from here on; messages on the way to it are made. DM_ERR_ARG, with nothing changed:
 * there is no such field, or it takes no such value. DM_ERR_NOMEM. */
dm_status nn_edit_set(const nn_edit *edit, nn_message *message, const nn_given *given);

#endif
