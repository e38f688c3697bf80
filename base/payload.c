/* Reference counts of payloads. Invariant: a payload is destroyed once, by whoever drops its last
 * reference, and sees every write made under the others. */
#include "troupe/payload.h"

struct troupe_payload troupe_payload_dead = {.references = 1, .flags = TROUPE_PAYLOAD_STATIC};

void troupe_payload_init(struct troupe_payload *payload,
                         void (*destroy)(struct troupe_payload *self))
{
    atomic_init(&payload->references, 1);
    payload->flags = 0;
    payload->destroy = destroy;
}

void troupe_payload_ref(struct troupe_payload *payload, uint32_t count)
{
    if (!payload || payload->flags & TROUPE_PAYLOAD_STATIC)
        return;
    /* Relaxed: the caller's own reference keeps the payload alive meanwhile. */
    atomic_fetch_add_explicit(&payload->references, count, memory_order_relaxed);
}

void troupe_payload_unref_many(struct troupe_payload *payload, uint32_t count)
{
    if (!payload || payload->flags & TROUPE_PAYLOAD_STATIC)
        return;
    /* Acquire and release: partner of itself in other threads, so that the last one sees all
     * that was written under the references dropped before. Whoever holds all that are left need
     * not write. */
    if ((atomic_load_explicit(&payload->references, memory_order_acquire) == count ||
         atomic_fetch_sub_explicit(&payload->references, count, memory_order_acq_rel) == count) &&
        payload->destroy)
        payload->destroy(payload);
}

void troupe_payload_unref(struct troupe_payload *payload)
{
    troupe_payload_unref_many(payload, 1);
}
