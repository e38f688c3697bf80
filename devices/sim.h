/* A simulated accelerator, for tests and studies without one.
 *
 * Its memory is a file in memory that is mapped twice. The first mapping may not be read or
 * written: its addresses are the device's, and a host that touches one dies of SIGSEGV. The second
 * is reached by the device alone: the threads of its streams translate an address before they use
 * it (troupe_device_reach). Each stream is one thread, which takes its work in order. A copy takes
 * a set latency and bytes over bandwidth, and reads and writes at the end of that time.
 *
 * Injected delays shake out missing order: before each piece of work and before each completion
 * the stream waits for 0 to 200 us drawn from the seed, and memory is filled with a pattern when it
 * is allocated and when it is freed. */
#ifndef TROUPE_DEVICES_SIM_H
#define TROUPE_DEVICES_SIM_H

#include <stdint.h>

#include "devices/stream.h"

#define TROUPE_SIM_MAX          64
#define TROUPE_SIM_MEMORY_MAX   ((size_t)1 << 40)
#define TROUPE_SIM_MEMORY_USUAL ((size_t)256 << 20)

struct troupe_sim_options {
    int count; /* of devices; 0: none */
    uint64_t latency_ns;
    uint64_t bandwidth;  /* bytes a second; 0: copies take the latency alone */
    uint64_t delay_seed; /* 0: no injected delays */
    size_t memory;       /* bytes of each device */
};

/* Reads "2,latency=10us,bandwidth=1GB/s,delays=7,memory=64MB": the number of devices, and what is
 * not usual. INVALID_ARGUMENT names the part and what it wants. */
TROUPE_MUST_USE enum troupe_status troupe_sim_options_parse(const char *text,
                                                            struct troupe_sim_options *out);

/* SIM:index. UNAVAILABLE: the system gives no such mapping; RESOURCE_EXHAUSTED. */
TROUPE_MUST_USE enum troupe_status troupe_sim_create(const struct troupe_sim_options *options,
                                                     int index, struct troupe_device **out);
/* Adds SIM:0 to SIM:count - 1. On failure some may be there: fini the table. */
TROUPE_MUST_USE enum troupe_status troupe_sim_add_all(const struct troupe_sim_options *options,
                                                      struct troupe_device_table *table);

#endif
