/* Attributes that public declarations carry. */
#ifndef TROUPE_ATTRIBUTES_H
#define TROUPE_ATTRIBUTES_H

#include <stddef.h>

#define TROUPE_API                 __attribute__((visibility("default")))
#define TROUPE_MUST_USE            __attribute__((warn_unused_result))
#define TROUPE_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))

/* The structure of `type` whose `member` a pointer points to. */
#define troupe_container_of(pointer, type, member)                                                 \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
