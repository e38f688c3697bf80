/* Any bytes are a packed tensor or an error, never a crash, and what they unpack to packs to the
 * same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wire_pack.h"
#include "ops/tensor.h"
#include "ops/tensor_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lists(const struct troupe_tensor *tensor)
{
    struct troupe_payload *const *elements = troupe_tensor_data(tensor);
    for (int64_t i = 0; tensor->dtype == TROUPE_VARIANT && i < tensor->elements; i++) {
        const struct troupe_tensor_list *list = troupe_tensor_list_of(elements[i]);
        if (list && !troupe_tensor_list_is_valid(list))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t bytes = (int64_t)size;
    struct troupe_tensor *packed, *tensor, *again;

    if (troupe_tensor_from_data(TROUPE_UINT8, 1, &bytes, data, &packed) != TROUPE_OK)
        return 0;
    enum troupe_status status = troupe_wire_unpack(packed, &tensor);
    troupe_tensor_unref(packed);
    if (status != TROUPE_OK) {
        if (status != TROUPE_DATA_LOSS && status != TROUPE_RESOURCE_EXHAUSTED)
            abort();
        return 0;
    }
    if (!troupe_tensor_is_valid(tensor))
        abort();
    check_lists(tensor);
    if (troupe_wire_pack(tensor, &again) != TROUPE_OK || troupe_tensor_bytes(again) != size ||
        memcmp(troupe_tensor_data(again), data, size) != 0)
        abort();
    troupe_tensor_unref(again);
    troupe_tensor_unref(tensor);
    return 0;
}
