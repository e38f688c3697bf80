/* Counted byte strings. Invariant: `data` ends in a zero byte beyond `length`. */
#include <string.h>

#include "base/memory.h"
#include "ops/string.h"

static size_t string_bytes(size_t length)
{
    return sizeof(struct troupe_string) + length + 1;
}

enum troupe_status troupe_string_create(const char *bytes, size_t length,
                                        struct troupe_string **out)
{
    if (length > SIZE_MAX / 2)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes", length);
    struct troupe_string *string = troupe_memory_alloc(string_bytes(length));
    if (!string)
        return TROUPE_RESOURCE_EXHAUSTED;
    atomic_init(&string->references, 1);
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
    /* Relaxed: the caller's own reference keeps the string alive meanwhile. */
    if (string)
        atomic_fetch_add_explicit(&string->references, 1, memory_order_relaxed);
    return string;
}

void troupe_string_unref(struct troupe_string *string)
{
    /* Acquire and release: partner of itself in other threads. */
    if (string && atomic_fetch_sub_explicit(&string->references, 1, memory_order_acq_rel) == 1)
        troupe_memory_free(string, string_bytes(string->length));
}

const char *troupe_string_data(const struct troupe_string *string)
{
    return string ? string->data : "";
}

size_t troupe_string_length(const struct troupe_string *string)
{
    return string ? string->length : 0;
}
