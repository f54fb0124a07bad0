/* Messages as text: prototxt files. */
#ifndef NN_TEXT_H
#define NN_TEXT_H

#include "proto/message.h"

/* Reads a text file, or text of which `file` is the name in messages. Errors: DM_ERR_FORMAT with file, line and
 * what was expected; DM_ERR_IO, DM_ERR_NOMEM. */
dm_status nn_text_read(const char *path, const char *type, nn_document **out);
dm_status nn_text_parse(const char *text, size_t length, const char *file, const char *type, nn_document **out);
/* The message as text, which nn_text_parse reads back to the same values; free() it. */
dm_status nn_text_print(const nn_message *message, char **out);
dm_status nn_text_write(const nn_message *message, const char *path);

#endif
