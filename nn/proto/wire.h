/* Messages as bytes: protobuf's wire format, of .caffemodel and .solverstate files, and of records. */
#ifndef NN_WIRE_H
#define NN_WIRE_H

#include "proto/message.h"

/* Errors: DM_ERR_FORMAT with the file, the message and the byte where it is not understood; DM_ERR_IO,
 * DM_ERR_NOMEM. */
dm_status nn_wire_read(const char *path, const char *type, nn_document **out);
dm_status nn_wire_parse(const void *bytes, size_t length, const char *file, const char *type,
                        nn_document **out);
/* The same, but fields of bytes stay in `bytes`, which must live as long as the document. No zero follows them.
 */
dm_status nn_wire_parse_in_place(const void *bytes, size_t length, const char *file, const char *type,
                                 nn_document **out);
/* The bytes of a message; free() them. */
dm_status nn_wire_bytes(const nn_message *message, char **bytes, size_t *length);
dm_status nn_wire_write(const nn_message *message, const char *path);

#endif
