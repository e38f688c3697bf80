/* FNV-1a, and an open-addressing map from names. Invariant: the map is a power of two slots, at
 * most two thirds of them used, so that every probe ends at a free one.
 * Source: Fowler, Noll, Vo, "The FNV non-cryptographic hash algorithm" (IETF draft). */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define FNV_PRIME UINT64_C(0x100000001b3)

struct troupe_name_slot {
    const char *name; /* borrowed; NULL: free */
    uint64_t hash;
    int index;
};

uint64_t troupe_hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * FNV_PRIME;
    return hash;
}

uint64_t troupe_hash_string(uint64_t hash, const char *text)
{
    return troupe_hash_bytes(hash, text, strlen(text) + 1);
}

uint64_t troupe_hash_u64(uint64_t hash, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (value >> 8 * i & 0xff)) * FNV_PRIME;
    return hash;
}

void troupe_name_map_init(struct troupe_name_map *map)
{
    *map = (struct troupe_name_map){0};
}

void troupe_name_map_fini(struct troupe_name_map *map)
{
    free(map->slots);
    troupe_name_map_init(map);
}

/* The slot of `name`, or the free one where it belongs. */
static struct troupe_name_slot *map_slot(const struct troupe_name_map *map, const char *name,
                                         uint64_t hash)
{
    for (size_t i = (size_t)hash;; i++) {
        struct troupe_name_slot *slot = &map->slots[i & (map->capacity - 1)];
        if (!slot->name || (slot->hash == hash && strcmp(slot->name, name) == 0))
            return slot;
    }
}

int troupe_name_map_get(const struct troupe_name_map *map, const char *name)
{
    if (map->count == 0)
        return -1;
    const struct troupe_name_slot *slot =
        map_slot(map, name, troupe_hash_string(TROUPE_HASH_START, name));
    return slot->name ? slot->index : -1;
}

static int map_grow(struct troupe_name_map *map)
{
    struct troupe_name_map grown = {.capacity = map->capacity ? 2 * map->capacity : 16,
                                    .count = map->count};
    grown.slots = troupe_calloc(grown.capacity, sizeof(*grown.slots));
    if (!grown.slots)
        return -1;
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].name)
            *map_slot(&grown, map->slots[i].name, map->slots[i].hash) = map->slots[i];
    }
    free(map->slots);
    *map = grown;
    return 0;
}

int troupe_name_map_put(struct troupe_name_map *map, const char *name, int index)
{
    if (3 * (map->count + 1) > 2 * map->capacity && map_grow(map) != 0)
        return -1;
    uint64_t hash = troupe_hash_string(TROUPE_HASH_START, name);
    struct troupe_name_slot *slot = map_slot(map, name, hash);
    map->count += slot->name == NULL;
    *slot = (struct troupe_name_slot){name, hash, index};
    return 0;
}
