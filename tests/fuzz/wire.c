/* protobuf's wire format: any bytes are an error, or a message whose bytes are read back to the same. */
#include "fuzz.h"
#include "proto/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"NetParameter", "SolverState", "BlobProto", "Datum"};
    if (size == 0) {
        return 0;
    }
    const char *type = types[data[0] & 3];
    char *bytes = exactly(data + 1, size - 1, 0), *once = NULL, *twice = NULL;
    size_t n = 0, m = 0;
    nn_document *document = NULL, *again = NULL;
    if (nn_wire_parse(bytes, size - 1, "fuzz", type, &document) == DM_OK) {
        HOLDS(nn_wire_bytes(document->root, &once, &n) == DM_OK);
        HOLDS(nn_wire_parse(once, n, "again", type, &again) == DM_OK);
        HOLDS(nn_wire_bytes(again->root, &twice, &m) == DM_OK);
        HOLDS(n == m && memcmp(once, twice, n) == 0);
        nn_document_free(document);
        nn_document_free(again);
    }
    free(once);
    free(twice);
    free(bytes);
    return 0;
}
