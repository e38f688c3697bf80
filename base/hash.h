/* 64-bit hashing (FNV-1a; not cryptographic): of names, plans and weights. */
#ifndef TROUPE_BASE_HASH_H
#define TROUPE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TROUPE_HASH_START UINT64_C(0xcbf29ce484222325)

/* Folds bytes, a string with its terminating zero, or a number (low byte first) into a hash. */
uint64_t troupe_hash_bytes(uint64_t hash, const void *data, size_t bytes);
uint64_t troupe_hash_string(uint64_t hash, const char *text);
uint64_t troupe_hash_u64(uint64_t hash, uint64_t value);

/* A map from strings to indices. Borrows the strings, which must outlive it. */
struct troupe_name_map {
    struct troupe_name_slot *slots;
    size_t capacity, count;
};
void troupe_name_map_init(struct troupe_name_map *map);
void troupe_name_map_fini(struct troupe_name_map *map);
/* The index stored under `name`, or -1. */
int troupe_name_map_get(const struct troupe_name_map *map, const char *name);
/* Stores or replaces; 0, or -1 with the message set when there is no memory. */
int troupe_name_map_put(struct troupe_name_map *map, const char *name, int index);

#endif
