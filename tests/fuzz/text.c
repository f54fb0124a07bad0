/* prototxt: any text is an error, or a message whose text is read back to the same. */
#include "fuzz.h"
#include "proto/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"NetParameter", "SolverParameter"};
    if (size == 0) {
        return 0;
    }
    const char *type = types[data[0] & 1];
    char *text = exactly(data + 1, size - 1, 0), *once = NULL, *twice = NULL;
    nn_document *document = NULL, *again = NULL;
    if (nn_text_parse(text, size - 1, "fuzz", type, &document) == DM_OK) {
        HOLDS(nn_text_print(document->root, &once) == DM_OK);
        HOLDS(nn_text_parse(once, strlen(once), "again", type, &again) == DM_OK);
        HOLDS(nn_text_print(again->root, &twice) == DM_OK);
        HOLDS(strcmp(once, twice) == 0);
        nn_document_free(document);
        nn_document_free(again);
    }
    free(once);
    free(twice);
    free(text);
    return 0;
}
