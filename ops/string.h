/* The elements of string tensors: counted byte strings that never change once shared. */
#ifndef TROUPE_OPS_STRING_H
#define TROUPE_OPS_STRING_H

#include <stddef.h>

#include "troupe/attributes.h"
#include "troupe/payload.h"
#include "troupe/status.h"

struct troupe_string {
    struct troupe_payload payload; /* first */
    size_t length;
    char data[]; /* `length` bytes and a zero byte */
};

/* A string with one reference and a copy of `length` bytes; NULL `bytes` leaves them zero.
 * RESOURCE_EXHAUSTED. Any thread. */
TROUPE_MUST_USE enum troupe_status troupe_string_create(const char *bytes, size_t length,
                                                        struct troupe_string **out);
/* NULL, the element of a tensor that was not set, counts as "" and is left alone. */
struct troupe_string *troupe_string_ref(struct troupe_string *string);
void troupe_string_unref(struct troupe_string *string);

/* The bytes and how many; "" and 0 for NULL. */
const char *troupe_string_data(const struct troupe_string *string);
size_t troupe_string_length(const struct troupe_string *string);

#endif
