/* Numbers as bytes, low byte first, so that machines of either byte order agree. */
#ifndef TROUPE_BASE_BYTES_H
#define TROUPE_BASE_BYTES_H

#include <stdint.h>

/* Writes, and reads, 8 bytes. */
void troupe_bytes_put_u64(unsigned char *out, uint64_t value);
uint64_t troupe_bytes_get_u64(const unsigned char *in);

#endif
