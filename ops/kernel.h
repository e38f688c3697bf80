/* What a kernel sees while a plan is cast and while it fires. */
#ifndef TROUPE_OPS_KERNEL_H
#define TROUPE_OPS_KERNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "devices/device.h"
#include "ops/op.h"
#include "troupe/tensor.h"

/* State that outlives steps; belongs to a session, found by node name. The first member of
 * each kind of state. */
struct troupe_resource {
    void (*destroy)(struct troupe_resource *self);
};

/* One node, cast. Read-only while it fires, but for `state` and the resources. */
struct troupe_kernel {
    const char *name;   /* the node's */
    const char *origin; /* the node's name in the JSON, before replication */
    const struct troupe_op_schema *schema;
    const struct troupe_kernel_row *row;
    const struct troupe_named_attr *attrs; /* complete: defaults filled in */
    int attr_count;
    int input_count, output_count;
    const enum troupe_dtype *input_dtypes, *output_dtypes;
    const struct troupe_shape *output_shapes; /* as inferred */
    uint64_t seed;                            /* of the graph, for NUMBERED ops */
    uint64_t stream; /* a hash of what distinguishes this node's random numbers */
    void *state;     /* of row->init */
    struct troupe_resource *own_resource; /* of the op's resource_create, else NULL */
    /* For each input of ref type, the resource of the node that it names; NULL for others. */
    struct troupe_resource *const *input_resources;
};

/* How a kernel that has to wait for others answers later, from any thread, once. Holds as long as
 * the firing is open. */
struct troupe_deferred {
    const struct troupe_kernel *kernel;
    uint64_t iteration; /* counted since the plan was cast: what `release` of the row is told */
    void *firing;       /* the coordinator's, as the function behind it */
    void (*complete)(void *firing, enum troupe_status status, const char *message,
                     struct troupe_tensor **outputs);
};

/* One firing. `inputs` are borrowed from the mailboxes; an input of ref type is NULL (the
 * kernel uses kernel->input_resources). The entries of `outputs` start as NULL. On success the
 * kernel has set every entry to a tensor whose one reference it gives away, or to
 * troupe_tensor_dead() (ops/tensor.h) for a branch not taken; on failure the
 * caller drops those that are set. */
struct troupe_kernel_call {
    struct troupe_kernel *kernel;
    struct troupe_tensor *const *inputs;
    struct troupe_tensor **outputs;
    uint64_t step; /* the iteration, counted since the session's start */
    uint64_t path; /* of a firing inside loops: differs among those of one step; outside 0 */
    struct troupe_parallel *parallel; /* splits large loops over the worker pool */
    struct troupe_deferred later;     /* see troupe_call_defer */
    void (*defer)(void *firing);      /* NULL where nothing may be deferred */
    bool is_deferred;
};

/* Keeps the firing open when the kernel returns OK, having set no output. Before anything that may
 * complete it. The inputs stay as they are until then. A kernel never blocks: this is how it waits.
 * FAILED_PRECONDITION where that cannot be. */
TROUPE_MUST_USE enum troupe_status troupe_call_defer(struct troupe_kernel_call *call,
                                                     struct troupe_deferred *out);
/* Ends the firing: gives away as many outputs as the kernel has, or fails it (`outputs` is then not
 * looked at; NULL message: the thread's). No lock that a kernel takes is held. */
void troupe_deferred_complete(const struct troupe_deferred *deferred, enum troupe_status status,
                              const char *message, struct troupe_tensor **outputs);

const struct troupe_attr *troupe_kernel_attr(const struct troupe_kernel *kernel, const char *name);
int64_t troupe_kernel_int(const struct troupe_kernel *kernel, const char *name);
double troupe_kernel_float(const struct troupe_kernel *kernel, const char *name);
bool troupe_kernel_bool(const struct troupe_kernel *kernel, const char *name);
enum troupe_dtype troupe_kernel_type(const struct troupe_kernel *kernel, const char *name);

/* Makes output `index` with the kernel's inferred dtype and puts it into call->outputs, where the
 * caller of the kernel finds it, or drops it when the kernel fails; `*out` is the same tensor,
 * to write. An output that was there already is dropped. */
TROUPE_MUST_USE enum troupe_status troupe_call_output(struct troupe_kernel_call *call, int index,
                                                      int rank, const int64_t *dims,
                                                      struct troupe_tensor **out);
/* Fires: empties `outputs`, runs the kernel's row, and on failure drops the outputs that it made.
 * Without a failure every output is set; INTERNAL names one that is not. */
TROUPE_MUST_USE enum troupe_status troupe_call_compute(struct troupe_kernel_call *call);
/* As troupe_call_output with the dims of input `input`, whose buffer is taken over when the
 * firing holds the only reference to it and the dtype is the same: element-wise kernels may
 * then write in place. */
TROUPE_MUST_USE enum troupe_status troupe_call_output_like(struct troupe_kernel_call *call,
                                                           int index, int input,
                                                           struct troupe_tensor **out);

/* A variable: its current value is a snapshot that readers share; an update writes in place
 * when it holds the only reference and to a fresh buffer otherwise (copy on write). */
struct troupe_variable {
    struct troupe_resource resource;
    pthread_mutex_t lock;        /* guards `value` */
    struct troupe_tensor *value; /* NULL: not initialised */
    enum troupe_dtype dtype;
    struct troupe_shape shape;
};
/* A variable without a value. RESOURCE_EXHAUSTED. resource.destroy frees it. */
TROUPE_MUST_USE enum troupe_status troupe_variable_create(enum troupe_dtype dtype,
                                                          const struct troupe_shape *shape,
                                                          struct troupe_variable **out);
/* The variable of a resource that troupe_variable_create made. */
struct troupe_variable *troupe_variable_of(struct troupe_resource *resource);
/* A new reference to the value. FAILED_PRECONDITION: "variable \"w\" is not initialised ...". */
TROUPE_MUST_USE enum troupe_status troupe_variable_read(struct troupe_variable *variable,
                                                        const char *name,
                                                        struct troupe_tensor **out);
/* Replaces the value; shares `value`. */
void troupe_variable_set(struct troupe_variable *variable, struct troupe_tensor *value);
/* Takes the value out for an update and makes it writable (in place or a copy); give it back
 * with troupe_variable_end_update. Holds the variable's lock between the two. */
TROUPE_MUST_USE enum troupe_status troupe_variable_begin_update(struct troupe_variable *variable,
                                                                const char *name,
                                                                struct troupe_tensor **out);
void troupe_variable_end_update(struct troupe_variable *variable, struct troupe_tensor *value);

/* The kernel row of an op for a device type and the dtypes in `attrs`; NULL, with a message that
 * lists what there is, when none fits. */
const struct troupe_kernel_row *troupe_kernel_row_find(const struct troupe_op_schema *schema,
                                                       const char *device,
                                                       const struct troupe_named_attr *attrs,
                                                       int attr_count);

#endif
