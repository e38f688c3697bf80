/* Any bytes are a .npy file that is whole or an error, never a crash; a literal likewise. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/literal.h"
#include "graph/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_literal(const uint8_t *data, size_t size)
{
    struct troupe_tensor *tensor = NULL;
    char *text = malloc(size + 1);

    if (text == NULL)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (troupe_tensor_from_json_text(text, TROUPE_DTYPE_INVALID, &tensor) == TROUPE_OK) {
        json_t *json = troupe_tensor_to_json(tensor);

        if (json == NULL)
            abort();
        json_decref(json);
    }
    troupe_tensor_unref(tensor);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct troupe_tensor *tensor = NULL;

    if (troupe_npy_parse(data, size, "fuzz.npy", &tensor) == TROUPE_OK &&
        troupe_tensor_bytes(tensor) > size)
        abort();
    troupe_tensor_unref(tensor);
    try_literal(data, size);
    return 0;
}
