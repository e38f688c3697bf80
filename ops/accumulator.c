/* Accumulators of gradients, and mutexes: state that firings wait for. */
#include "ops/kernels/accumulator.h"
#include "ops/families.h"
#include "ops/kernels/mutex.h"
#include "ops/kernels/waiting.h"

#define NO_GRADIENT "its inputs are gradients already"
#define NUMERIC     "dtype: {float32, float64, int32, int64}"
#define NAMES       "container: string = ''; shared_name: string = ''"

#define WAITS(compute_fn)                                                                          \
    {                                                                                              \
        .device = "CPU", .compute = compute_fn, .init = troupe_waiting_init,                       \
        .fini = troupe_waiting_fini, .release = troupe_waiting_release                             \
    }
static const struct troupe_kernel_row handle_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_state_handle}};
static const struct troupe_kernel_row apply_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_accumulator_apply}};
static const struct troupe_kernel_row take_kernels[] = {WAITS(troupe_kernel_accumulator_take)};
static const struct troupe_kernel_row count_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_accumulator_count}};
static const struct troupe_kernel_row set_step_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_accumulator_set_step}};
static const struct troupe_kernel_row lock_kernels[] = {WAITS(troupe_kernel_mutex_lock)};
static const struct troupe_kernel_row consume_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_mutex_consume}};

static enum troupe_status infer_lock(struct troupe_infer *infer)
{
    infer->output_shapes[0] = troupe_shape_scalar();
    return TROUPE_OK;
}

/* An op under TensorFlow's two names: of a handle that is a resource, and the older one. */
#define ROWS(op_name, sentence, in, out, attributes, shapes, op_flags, rows, create)               \
    ROW(op_name, sentence, in, out, attributes, shapes, op_flags, rows, create),                   \
        ROW("Resource" op_name, sentence, in, out, attributes, shapes, op_flags, rows, create)
#define ROW(op_name, sentence, in, out, attributes, shapes, op_flags, rows, create)                \
    {                                                                                              \
        .name = op_name, .doc = sentence, .inputs = in, .outputs = out, .attrs = attributes,       \
        .flags = op_flags, .infer = troupe_infer_##shapes, .no_gradient = NO_GRADIENT,             \
        .kernels = rows, .kernel_count = 1, .resource_create = create                              \
    }

const struct troupe_op troupe_ops_accumulator[] = {
    ROWS("ConditionalAccumulator", "Adds up gradients until somebody takes them.", "",
         "handle: resource",
         NUMERIC "; shape: shape = ?; reduction_type: {'MEAN', 'SUM'} = 'MEAN'; " NAMES, scalar, 0,
         handle_kernels, troupe_accumulator_create),
    ROWS("AccumulatorApplyGradient",
         "Adds a gradient, unless its local_step is before the accumulator's.",
         "handle: resource, local_step: int64, gradient: dtype", "", NUMERIC, none,
         TROUPE_OP_STATEFUL, apply_kernels, NULL),
    ROWS("AccumulatorTakeGradient",
         "The mean (or sum) of the gradients, once num_required are there; the accumulator is "
         "empty then, and a step further.",
         "handle: resource, num_required: int32", "average: dtype", NUMERIC, unknown,
         TROUPE_OP_STATEFUL, take_kernels, NULL),
    ROWS("AccumulatorNumAccumulated", "How many gradients are in the accumulator.",
         "handle: resource", "num_accumulated: int32", "", scalar, TROUPE_OP_STATEFUL,
         count_kernels, NULL),
    ROWS("AccumulatorSetGlobalStep", "Sets the accumulator's step.",
         "handle: resource, new_global_step: int64", "", "", none, TROUPE_OP_STATEFUL,
         set_step_kernels, NULL),
    ROW("MutexV2", "A mutex.", "", "mutex: resource", NAMES, scalar, 0, handle_kernels,
        troupe_mutex_create),
    {.name = "MutexLock",
     .doc = "Waits for the mutex; it is free again when the lock's last user has fired.",
     .inputs = "mutex: resource",
     .outputs = "mutex_lock: resource",
     .attrs = "",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_lock,
     .no_gradient = NO_GRADIENT,
     .kernels = lock_kernels,
     .kernel_count = 1},
    ROW("ConsumeMutexLock", "Holds a lock until it fires.", "mutex_lock: resource", "", "", none,
        TROUPE_OP_STATEFUL, consume_kernels, NULL),
};
const size_t troupe_ops_accumulator_count =
    sizeof(troupe_ops_accumulator) / sizeof(troupe_ops_accumulator[0]);
