/* Packs as bytes. Invariant: what is read lies in the pack. */
#include "transport/pack.h"

#include <string.h>

#include "base/bytes.h"
#include "transport/transport.h"

size_t troupe_pack_put(unsigned char *pack, size_t at, const struct troupe_pack_entry *entry)
{
    troupe_bytes_put_u64(pack + at, (uint64_t)(uint32_t)entry->tag | (uint64_t)entry->flags << 32 |
                                        (uint64_t)entry->bytes << 48);
    if (entry->bytes > 0)
        memcpy(pack + at + TROUPE_PACK_ENTRY, entry->data, entry->bytes);
    return at + TROUPE_PACK_ENTRY + entry->bytes;
}

bool troupe_pack_get(const unsigned char *pack, size_t size, size_t *at,
                     struct troupe_pack_entry *out)
{
    if (size - *at < TROUPE_PACK_ENTRY)
        return false;
    uint64_t header = troupe_bytes_get_u64(pack + *at);
    out->tag = (int)(uint32_t)header;
    out->flags = (unsigned)(header >> 32 & UINT16_MAX);
    out->bytes = (size_t)(header >> 48);
    out->data = pack + *at + TROUPE_PACK_ENTRY;
    *at += TROUPE_PACK_ENTRY;
    if (out->tag < 0 || out->bytes > TROUPE_TRANSFER_SMALL || out->bytes > size - *at)
        return false;
    *at += out->bytes;
    bool is_answer = out->flags == TROUPE_PACK_MATCHED;
    return is_answer ? out->bytes == 0 : (out->flags & ~(unsigned)TROUPE_PACK_SYNCHRONOUS) == 0;
}
