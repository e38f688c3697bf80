/* What an op is: a schema, a shape function, a gradient and kernels, as one row of data.
 *
 * A family file (ops/math.c, ops/array.c, ...) holds a `static const struct troupe_op` table
 * and ops/registry.c lists the tables. The schema strings are in the notation of TensorFlow's
 * REGISTER_OP and are parsed once, when the registry is first used. */
#ifndef TROUPE_OPS_OP_H
#define TROUPE_OPS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/attr.h"
#include "troupe/dtype.h"
#include "troupe/status.h"

struct troupe_gradient;    /* ops/gradient.h */
struct troupe_kernel;      /* ops/kernel.h */
struct troupe_kernel_call; /* ops/kernel.h */
struct troupe_resource;    /* ops/kernel.h */
struct troupe_op_schema;

/* A set of dtypes: bit n stands for dtype number n. */
typedef uint32_t troupe_dtype_set;
#define TROUPE_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))

/* What a shape function sees. dtypes of inputs and outputs and all attrs (defaults and inferred
 * types included) are there already; it checks input shapes and sets output shapes, which start
 * as unknown. */
struct troupe_infer {
    const struct troupe_op_schema *schema;
    const struct troupe_named_attr *attrs;
    int attr_count;
    int input_count;
    const enum troupe_dtype *input_dtypes;
    const struct troupe_shape *input_shapes;
    /* The value of an input that is known before the run (a Const), else NULL. */
    const struct troupe_tensor *const *input_values;
    int output_count;
    const enum troupe_dtype *output_dtypes;
    struct troupe_shape *output_shapes;
};

/* Returns INVALID_ARGUMENT with a message that says what would have been right; the caller puts
 * the node's name, op and place before it. */
typedef enum troupe_status troupe_infer_fn(struct troupe_infer *infer);

/* Writes the gradient of a node as nodes (ops/gradient.h). */
typedef enum troupe_status troupe_gradient_fn(struct troupe_gradient *gradient);

/* Computes one firing (ops/kernel.h). */
typedef enum troupe_status troupe_compute_fn(struct troupe_kernel_call *call);

/* One implementation: the device type it is for and the dtypes of its `T` (or of the attr that
 * `type_attr` names) that it takes. */
struct troupe_kernel_row {
    const char *device;         /* "CPU" */
    const char *type_attr;      /* NULL: any dtype */
    troupe_dtype_set dtypes;    /* of type_attr */
    troupe_compute_fn *compute; /* required */
    /* Optional: builds kernel->state from the attrs, once, when a plan is cast; `fini` frees it. */
    enum troupe_status (*init)(struct troupe_kernel *kernel);
    void (*fini)(struct troupe_kernel *kernel);
    /* Of a kernel that may wait for other firings: ends those of its deferred firings from
     * iteration `first` on that still do, as ABORTED. Any thread, again and again. */
    void (*release)(struct troupe_kernel *kernel, uint64_t first);
};

enum troupe_op_flags {
    TROUPE_OP_STATEFUL = 1,   /* never folded, merged or run twice; firings in step order */
    TROUPE_OP_SOURCE = 2,     /* reads data from outside: a dataset */
    TROUPE_OP_RUNTIME = 4,    /* no kernel: the runtime itself does it (Send, Recv, AllReduce) */
    TROUPE_OP_NUMBERED = 8,   /* draws random numbers: keyed by graph seed, origin name, step */
    TROUPE_OP_SHARDED = 16,   /* has shard_index and shard_count attrs that data-parallel sets */
    TROUPE_OP_TAKES_DEAD = 32 /* fires for dead inputs too: they are troupe_tensor_dead() */
};

/* What an op is to the frames of a graph (graph/frames.h) and to its functions. */
enum troupe_flow {
    TROUPE_FLOW_NONE = 0,
    TROUPE_FLOW_SWITCH,
    TROUPE_FLOW_MERGE,
    TROUPE_FLOW_ENTER,
    TROUPE_FLOW_EXIT,
    TROUPE_FLOW_NEXT_ITERATION,
    TROUPE_FLOW_LOOP_COND,
    /* What graph/lower.h makes of these: primitives; only calls of recursive functions stay. */
    TROUPE_FLOW_WHILE,
    TROUPE_FLOW_IF,
    TROUPE_FLOW_CASE,
    TROUPE_FLOW_CALL,
    TROUPE_FLOW_ARG
};

struct troupe_op {
    const char *name;
    const char *doc;     /* one line: what it computes, in a sentence */
    const char *inputs;  /* "a: T, b: T" | "values: N * T" | "ref: Ref(T)" | "x: float32" | "" */
    const char *outputs; /* as inputs; also "out: Tlist" for a list(type) attr */
    /* "transpose_a: bool = false; T: {float32, float64}; N: int >= 1; data_format: {'NHWC',
     * 'NCHW'} = 'NHWC'; dtype: type; shape: shape = ?; axis: list(int) = []" */
    const char *attrs;
    unsigned flags;
    enum troupe_flow flow;
    troupe_infer_fn *infer;                  /* required */
    troupe_gradient_fn *gradient;            /* NULL: see no_gradient */
    const char *no_gradient;                 /* why there is none; required when gradient is NULL */
    const struct troupe_kernel_row *kernels; /* kernel_count rows; none for RUNTIME ops */
    size_t kernel_count;
    /* Optional: the op owns state that outlives steps (a variable, a dataset's position), made
     * once per node and session. */
    enum troupe_status (*resource_create)(const struct troupe_kernel *kernel,
                                          struct troupe_resource **out);
};

/* One parsed input or output. */
struct troupe_op_arg {
    const char *name;
    enum troupe_dtype dtype; /* fixed dtype, or INVALID when type_attr or list_attr says */
    const char *type_attr;   /* attr that holds the dtype */
    const char *number_attr; /* attr that holds how many (a homogeneous list), else NULL */
    const char *list_attr;   /* attr of kind list(type): one entry per tensor, else NULL */
    bool is_ref;
};

/* One parsed attr. */
struct troupe_op_attr {
    const char *name;
    enum troupe_attr_kind kind;
    bool has_default;
    struct troupe_attr default_value;
    troupe_dtype_set dtypes; /* allowed, for kind TYPE or LIST_TYPE; 0: all */
    const char **strings;    /* allowed, for kind STRING; string_count of them; 0: all */
    size_t string_count;
    bool has_minimum;
    int64_t minimum; /* for kind INT, and for the length of a list */
};

struct troupe_op_schema {
    const struct troupe_op *op;
    struct troupe_op_arg *inputs;
    int input_count;
    struct troupe_op_arg *outputs;
    int output_count;
    struct troupe_op_attr *attrs;
    int attr_count;
};

/* The schema by op name (aliases such as "AddV2" are rows of their own), NULL when there is none.
 * The registry is built at the first call; a malformed row aborts with a message that names it. */
const struct troupe_op_schema *troupe_op_find(const char *name);
/* All schemas, sorted by name. */
const struct troupe_op_schema *const *troupe_op_list(size_t *count_out);
/* The op whose name is nearest to `name`, NULL when none is near. */
const char *troupe_op_suggest(const char *name);
/* The attr's description by name, NULL when the op has none. */
const struct troupe_op_attr *troupe_op_attr_find(const struct troupe_op_schema *schema,
                                                 const char *name);

/* The value of an attr; NULL when absent. */
const struct troupe_attr *troupe_attr_find(const struct troupe_named_attr *attrs, int count,
                                           const char *name);

/* Typed reads for shape functions and kernels of attrs that the schema guarantees. */
const struct troupe_attr *troupe_infer_attr(const struct troupe_infer *infer, const char *name);
int64_t troupe_infer_int(const struct troupe_infer *infer, const char *name);
bool troupe_infer_bool(const struct troupe_infer *infer, const char *name);

/* Shape functions that many ops share (ops/infer.c). */
troupe_infer_fn troupe_infer_unchanged; /* every output has input 0's shape */
troupe_infer_fn troupe_infer_broadcast; /* inputs 0 and 1 broadcast */
troupe_infer_fn troupe_infer_scalar;    /* every output is a scalar */
troupe_infer_fn troupe_infer_unknown;   /* nothing is known */
troupe_infer_fn troupe_infer_none;      /* no outputs */

#endif
