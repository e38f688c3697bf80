/* Any bytes are a row of entries or an error, and what is read is written again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/pack.h"
#include "transport/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char again[TROUPE_PACK_BYTES];
    struct troupe_pack_entry entry;

    if (size > TROUPE_PACK_BYTES)
        size = TROUPE_PACK_BYTES;
    for (size_t at = 0, before = 0; at < size; before = at) {
        if (!troupe_pack_get(data, size, &at, &entry))
            return 0;
        if (entry.tag < 0 || entry.bytes > TROUPE_TRANSFER_SMALL || at > size ||
            troupe_pack_put(again, before, &entry) != at ||
            memcmp(again + before, data + before, at - before) != 0)
            abort();
    }
    return 0;
}
