/* Base64 (RFC 4648, with padding), in which GraphDef's JSON writes bytes; private to graph/. */
#ifndef TROUPE_GRAPH_LOAD_BASE64_H
#define TROUPE_GRAPH_LOAD_BASE64_H

#include <stddef.h>

#include "base/text.h"
#include "troupe/status.h"

/* Decodes the standard or the URL alphabet, padding optional, into new memory with a zero byte
 * after it; free() frees. INVALID_ARGUMENT names the character that is wrong. */
TROUPE_MUST_USE enum troupe_status troupe_base64_decode(const char *text, size_t length,
                                                        char **bytes_out, size_t *count_out);
/* Adds the standard form with padding. */
void troupe_base64_encode(const void *bytes, size_t count, struct troupe_text *out);

#endif
