/* The accelerators of a rank: devices with memory of their own, beside its CPU. */
#ifndef TROUPE_COORDINATOR_ACCELERATOR_H
#define TROUPE_COORDINATOR_ACCELERATOR_H

#include "devices/stream.h"
#include "graph/graph.h"
#include "ops/tensor.h"

/* A device and its streams: copies into its memory, out of it, and what it computes. */
struct troupe_accelerator {
    struct troupe_device *device; /* of the table */
    struct troupe_stream *in, *out, *compute;
};

/* All of them; a node's `accelerator` is 1 + the number of one. */
struct troupe_accelerators {
    struct troupe_device_table table;
    struct troupe_accelerator *all; /* one for each device of the table */
};
/* Gives each device of the table its streams. On failure some have: fini. */
TROUPE_MUST_USE enum troupe_status
troupe_accelerators_open(struct troupe_accelerators *accelerators);
/* Waits for what is queued, and destroys the devices. */
void troupe_accelerators_fini(struct troupe_accelerators *accelerators);

/* What placement does with the device type and index that a node's `device` states: sets the node's
 * `accelerator`, 0 for the CPU. `table` NULL: which devices there will be is not known, and every
 * simulated one is allowed. Ops of control flow, which only pass tokens on, stay on the CPU. False
 * with `why` when the device is not there or the op cannot run on it. */
TROUPE_MUST_USE bool troupe_node_accelerate(struct troupe_graph *graph, int node,
                                            const struct troupe_device_spec *spec,
                                            const struct troupe_device_table *table, char *why,
                                            size_t why_size);
/* "CPU:0" or "SIM:1", of a placed node. */
const char *troupe_node_device_name(const struct troupe_node *node, char *out, size_t size);

/* A tensor in a device's memory, with unset elements: its data is a device address. The memory is
 * freed with the last reference to the buffer. RESOURCE_EXHAUSTED names the device. Any thread. */
TROUPE_MUST_USE enum troupe_status troupe_device_tensor_create(struct troupe_device *device,
                                                               enum troupe_dtype dtype, int rank,
                                                               const int64_t *dims,
                                                               struct troupe_tensor **out);

#endif
