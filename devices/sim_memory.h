/* Inside of the simulated device: its two mappings, and which of its bytes are allocated. */
#ifndef TROUPE_DEVICES_SIM_MEMORY_H
#define TROUPE_DEVICES_SIM_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

/* Neighbours in memory are neighbours in the list, and two free ones are never side by side. */
struct troupe_sim_block {
    struct troupe_sim_block *next, *previous;
    size_t offset, bytes, wanted;
    bool used;
};

struct troupe_sim_memory {
    char *window; /* the device's addresses: neither read nor written */
    char *inside; /* the same bytes for the device's threads */
    size_t bytes;
    bool fills; /* with a pattern what is allocated and freed */
    const char *name;
    pthread_mutex_t lock; /* guards what follows */
    size_t used;
    struct troupe_sim_block *blocks;
};

/* `name` is borrowed, for messages. */
TROUPE_MUST_USE enum troupe_status troupe_sim_memory_init(struct troupe_sim_memory *memory,
                                                          size_t bytes, bool fills,
                                                          const char *name);
void troupe_sim_memory_fini(struct troupe_sim_memory *memory);
/* As the slots of the same names in struct troupe_device_ops. */
TROUPE_MUST_USE enum troupe_status troupe_sim_memory_alloc(struct troupe_sim_memory *memory,
                                                           size_t bytes, void **out);
void troupe_sim_memory_free(struct troupe_sim_memory *memory, void *address);
TROUPE_MUST_USE enum troupe_status troupe_sim_memory_reach(struct troupe_sim_memory *memory,
                                                           const void *address, size_t bytes,
                                                           void **out);

#endif
