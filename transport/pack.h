/* The bytes of a pack: small transfers that share a message.
 *
 * A row of entries: tag, flags and length (4, 2 and 2 bytes, low byte first), then the bytes. */
#ifndef TROUPE_TRANSPORT_PACK_H
#define TROUPE_TRANSPORT_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TROUPE_PACK_BYTES 8192 /* the longest */
#define TROUPE_PACK_ENTRY 8    /* before the bytes of each entry */
/* Of an entry: its send wants to hear when it is matched; it says so of one, and has no bytes. */
enum { TROUPE_PACK_SYNCHRONOUS = 1, TROUPE_PACK_MATCHED = 2 };

struct troupe_pack_entry {
    int tag;
    unsigned flags;
    const unsigned char *data; /* in the pack */
    size_t bytes;
};

/* Writes an entry at `at`, where there is room for it; returns where the next one goes. */
size_t troupe_pack_put(unsigned char *pack, size_t at, const struct troupe_pack_entry *entry);
/* Reads the entry at *at, which is below `size`, and moves *at behind it. False when it is cut
 * short or is one that nobody writes: a tag that is negative, unknown flags, more bytes than a
 * small transfer has. */
bool troupe_pack_get(const unsigned char *pack, size_t size, size_t *at,
                     struct troupe_pack_entry *out);

#endif
