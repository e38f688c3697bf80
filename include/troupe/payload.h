/* What an edge carries: a reference-counted, immutable payload.
 *
 * The engine schedules payloads and never looks inside one; a tensor is a payload. An
 * embedding program makes its own by putting a `struct troupe_payload` first in a structure. */
#ifndef TROUPE_PAYLOAD_H
#define TROUPE_PAYLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "troupe/attributes.h"

struct troupe_payload {
    _Atomic(uint32_t) references;
    uint32_t flags; /* TROUPE_PAYLOAD_* */
    /* Frees the payload when its last reference goes. Any thread. NULL: never freed. */
    void (*destroy)(struct troupe_payload *self);
};

/* A payload that is not counted: static storage. */
#define TROUPE_PAYLOAD_STATIC 1u

/* The token of an input that will not come: a branch not taken, or a failed producer. */
TROUPE_API extern struct troupe_payload troupe_payload_dead;

/* Starts a payload with one reference. Any thread. */
TROUPE_API void troupe_payload_init(struct troupe_payload *payload,
                                    void (*destroy)(struct troupe_payload *self));

/* Adds `count` references. NULL and static payloads are left alone. Any thread. */
TROUPE_API void troupe_payload_ref(struct troupe_payload *payload, uint32_t count);

/* Drops one reference and destroys the payload with the last. NULL and static payloads are
 * left alone. Any thread. */
TROUPE_API void troupe_payload_unref(struct troupe_payload *payload);
/* Drops `count` (at least 1) references of the caller's at once. */
TROUPE_API void troupe_payload_unref_many(struct troupe_payload *payload, uint32_t count);

#endif
