/* Counted byte strings. Invariant: `data` ends in a zero byte beyond `length`. */
#include <string.h>

#include "base/memory.h"
#include "ops/string.h"

static size_t string_bytes(size_t length)
{
    return sizeof(struct troupe_string) + length + 1;
}

static void string_destroy(struct troupe_payload *payload)
{
    struct troupe_string *string = troupe_container_of(payload, struct troupe_string, payload);
    troupe_memory_free(string, string_bytes(string->length));
}

enum troupe_status troupe_string_create(const char *bytes, size_t length,
                                        struct troupe_string **out)
{
    if (length > SIZE_MAX / 2)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes", length);
    struct troupe_string *string = troupe_memory_alloc(string_bytes(length));
    if (!string)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_payload_init(&string->payload, string_destroy);
    string->length = length;
    if (bytes && length > 0)
        memcpy(string->data, bytes, length);
    else
        memset(string->data, 0, length);
    string->data[length] = '\0';
    *out = string;
    return TROUPE_OK;
}

struct troupe_string *troupe_string_ref(struct troupe_string *string)
{
    if (string)
        troupe_payload_ref(&string->payload, 1);
    return string;
}

void troupe_string_unref(struct troupe_string *string)
{
    if (string)
        troupe_payload_unref(&string->payload);
}

const char *troupe_string_data(const struct troupe_string *string)
{
    return string ? string->data : "";
}

size_t troupe_string_length(const struct troupe_string *string)
{
    return string ? string->length : 0;
}
