/* Queues: state between steps and between loops. An op that finds no room, or too few elements,
 * waits without a worker; nothing but data and control edges orders the ops of one queue, so that
 * one that waits does not keep away the one that it waits for. */
#include "ops/kernels/queue.h"
#include "ops/families.h"
#include "ops/kernels/barrier.h"
#include "ops/kernels/waiting.h"

#define NO_GRADIENT "gradients do not flow through queues"

static const struct troupe_kernel_row handle_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_state_handle}};

/* A kernel that may wait. */
#define WAITS(stem)                                                                                \
    {                                                                                              \
        .device = "CPU", .compute = troupe_kernel_queue_##stem, .init = troupe_waiting_init,       \
        .fini = troupe_waiting_fini, .release = troupe_waiting_release                             \
    }
static const struct troupe_kernel_row enqueue_kernels[] = {WAITS(enqueue)};
static const struct troupe_kernel_row enqueue_many_kernels[] = {WAITS(enqueue_many)};
static const struct troupe_kernel_row dequeue_kernels[] = {WAITS(dequeue)};
static const struct troupe_kernel_row dequeue_many_kernels[] = {WAITS(dequeue_many)};
static const struct troupe_kernel_row dequeue_up_to_kernels[] = {WAITS(dequeue_up_to)};
static const struct troupe_kernel_row close_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_queue_close}};
static const struct troupe_kernel_row size_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_queue_size}};
static const struct troupe_kernel_row is_closed_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_queue_is_closed}};

/* What all kinds of queues have: dtypes, shapes (one for each dtype, or none) and capacity. */
static enum troupe_status read_options(const struct troupe_kernel *kernel,
                                       struct troupe_queue_options *options)
{
    const struct troupe_attr *types = troupe_kernel_attr(kernel, "component_types");
    const struct troupe_attr *shapes = troupe_kernel_attr(kernel, "shapes");
    int64_t capacity = troupe_kernel_int(kernel, "capacity");
    if (types->count == 0 || types->count > TROUPE_QUEUE_COMPONENTS_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"component_types\" has %zu entries: wants 1 to %d",
                                  types->count, TROUPE_QUEUE_COMPONENTS_MAX);
    if (shapes->count != 0 && shapes->count != types->count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"shapes\" has %zu entries: wants none, or one for each of the "
                                  "%zu component_types",
                                  shapes->count, types->count);
    if (capacity == 0 || capacity < -1 || capacity > TROUPE_QUEUE_CAPACITY_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"capacity\" is %lld: wants 1 to %lld, or -1 for no limit",
                                  (long long)capacity, (long long)TROUPE_QUEUE_CAPACITY_MAX);
    options->capacity = capacity < 0 ? TROUPE_QUEUE_CAPACITY_MAX : capacity;
    options->components = (int)types->count;
    options->dtypes = types->value.list_type;
    options->shapes = shapes->count > 0 ? shapes->value.list_shape : NULL;
    return TROUPE_OK;
}

static enum troupe_status create_fifo(const struct troupe_kernel *kernel,
                                      struct troupe_resource **out)
{
    struct troupe_queue_options options = {.order = TROUPE_QUEUE_FIFO};
    enum troupe_status status = read_options(kernel, &options);
    return status == TROUPE_OK ? troupe_queue_resource_create(kernel, &options, out) : status;
}

static enum troupe_status create_padding(const struct troupe_kernel *kernel,
                                         struct troupe_resource **out)
{
    struct troupe_queue_options options = {.order = TROUPE_QUEUE_FIFO, .pads = true};
    enum troupe_status status = read_options(kernel, &options);
    return status == TROUPE_OK ? troupe_queue_resource_create(kernel, &options, out) : status;
}

static enum troupe_status create_shuffle(const struct troupe_kernel *kernel,
                                         struct troupe_resource **out)
{
    struct troupe_queue_options options = {.order = TROUPE_QUEUE_SHUFFLE};
    enum troupe_status status = read_options(kernel, &options);
    options.min_after_dequeue = troupe_kernel_int(kernel, "min_after_dequeue");
    options.seed = kernel->seed ^ kernel->stream ^ (uint64_t)troupe_kernel_int(kernel, "seed") ^
                   (uint64_t)troupe_kernel_int(kernel, "seed2") << 32;
    if (status == TROUPE_OK && options.min_after_dequeue >= options.capacity)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"min_after_dequeue\" is %lld: wants less than the capacity, "
                                  "%lld",
                                  (long long)options.min_after_dequeue,
                                  (long long)options.capacity);
    return status == TROUPE_OK ? troupe_queue_resource_create(kernel, &options, out) : status;
}

static enum troupe_status create_priority(const struct troupe_kernel *kernel,
                                          struct troupe_resource **out)
{
    struct troupe_queue_options options = {.order = TROUPE_QUEUE_PRIORITY};
    enum troupe_status status = read_options(kernel, &options);
    if (status == TROUPE_OK && options.dtypes[0] != TROUPE_INT64)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"component_types\" starts with %s: wants int64, the priority",
                                  troupe_dtype_name(options.dtypes[0]));
    return status == TROUPE_OK ? troupe_queue_resource_create(kernel, &options, out) : status;
}

static enum troupe_status create_barrier(const struct troupe_kernel *kernel,
                                         struct troupe_resource **out)
{
    struct troupe_queue_options options = {.order = TROUPE_QUEUE_FIFO};
    enum troupe_status status = read_options(kernel, &options);
    if (status == TROUPE_OK && options.components > TROUPE_QUEUE_COMPONENTS_MAX - 2)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"component_types\" has %d entries: wants at most %d",
                                  options.components, TROUPE_QUEUE_COMPONENTS_MAX - 2);
    return status == TROUPE_OK ? troupe_barrier_create(kernel, &options, out) : status;
}

static const struct troupe_kernel_row insert_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_barrier_insert}};
static const struct troupe_kernel_row barrier_take_kernels[] = {
    {.device = "CPU",
     .compute = troupe_kernel_barrier_take,
     .init = troupe_waiting_init,
     .fini = troupe_waiting_fini,
     .release = troupe_waiting_release}};
static const struct troupe_kernel_row barrier_close_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_barrier_close}};
static const struct troupe_kernel_row ready_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_barrier_ready}};
static const struct troupe_kernel_row incomplete_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_barrier_incomplete}};

#define NAMES "container: string = ''; shared_name: string = ''"
#define SHAPES                                                                                     \
    "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; " NAMES

#define QUEUE_ROW(op_name, sentence, more, create)                                                 \
    {                                                                                              \
        .name = op_name, .doc = sentence, .inputs = "", .outputs = "handle: resource",             \
        .attrs = SHAPES more, .infer = troupe_infer_scalar, .no_gradient = NO_GRADIENT,            \
        .kernels = handle_kernels, .kernel_count = 1, .resource_create = create                    \
    }
#define QUEUE_ROWS(op_name, sentence, more, create)                                                \
    QUEUE_ROW(op_name, sentence, more, create), QUEUE_ROW(op_name "V2", sentence, more, create)

#define OP_ROW(op_name, sentence, in, out, attributes, shapes, rows)                               \
    {                                                                                              \
        .name = op_name, .doc = sentence, .inputs = "handle: resource" in, .outputs = out,         \
        .attrs = attributes, .flags = TROUPE_OP_STATEFUL, .infer = troupe_infer_##shapes,          \
        .no_gradient = NO_GRADIENT, .kernels = rows, .kernel_count = 1                             \
    }
#define OP_ROWS(op_name, sentence, in, out, attributes, shapes, rows)                              \
    OP_ROW(op_name, sentence, in, out, attributes, shapes, rows),                                  \
        OP_ROW(op_name "V2", sentence, in, out, attributes, shapes, rows)

#define PUTS  "Tcomponents: list(type) >= 1; timeout_ms: int = -1"
#define TAKES "component_types: list(type) >= 1; timeout_ms: int = -1"

const struct troupe_op troupe_ops_queue[] = {
    QUEUE_ROWS("FIFOQueue", "A queue whose oldest element is taken first.", "", create_fifo),
    QUEUE_ROWS("PaddingFIFOQueue",
               "A FIFOQueue that pads elements of several shapes with zeros when many are taken.",
               "", create_padding),
    QUEUE_ROWS("RandomShuffleQueue",
               "A queue of which an element drawn at random is taken, while more than "
               "min_after_dequeue are there.",
               "; min_after_dequeue: int >= 0 = 0; seed: int = 0; seed2: int = 0", create_shuffle),
    QUEUE_ROWS("PriorityQueue", "A queue whose element with the lowest component 0 is taken first.",
               "", create_priority),
    OP_ROWS("QueueEnqueue", "Puts one element in; waits for room.", ", components: Tcomponents", "",
            PUTS, none, enqueue_kernels),
    OP_ROWS("QueueEnqueueMany",
            "Puts the rows of the components in, in order and with none between; waits for room.",
            ", components: Tcomponents", "", PUTS, none, enqueue_many_kernels),
    OP_ROWS("QueueDequeue", "Takes one element; waits for one.", "", "components: component_types",
            TAKES, unknown, dequeue_kernels),
    OP_ROWS("QueueDequeueMany",
            "Takes n elements, stacked, with none taken between; waits until there have been n.",
            ", n: int32", "components: component_types", TAKES, unknown, dequeue_many_kernels),
    OP_ROWS("QueueDequeueUpTo", "As QueueDequeueMany; of a closed queue what is left.",
            ", n: int32", "components: component_types", TAKES, unknown, dequeue_up_to_kernels),
    OP_ROWS("QueueClose",
            "Ends putting in; who waits for elements that will not come fails with OUT_OF_RANGE.",
            "", "", "cancel_pending_enqueues: bool = false", none, close_kernels),
    OP_ROWS("QueueSize", "How many elements the queue has.", "", "size: int32", "", scalar,
            size_kernels),
    OP_ROWS("QueueIsClosed", "Whether the queue is closed.", "", "is_closed: bool", "", scalar,
            is_closed_kernels),
    QUEUE_ROW("Barrier", "Elements with keys, whose components come one by one.", "",
              create_barrier),
    OP_ROW("BarrierInsertMany",
           "Gives one component to each of the elements with these keys; an element that has all "
           "components is ready.",
           ", keys: string, values: T", "", "T: type; component_index: int >= 0", none,
           insert_kernels),
    OP_ROW("BarrierTakeMany",
           "Takes num_elements ready elements: when their keys first came, the keys, the "
           "components; waits for them.",
           ", num_elements: int32", "indices: int64, keys: string, values: component_types",
           "component_types: list(type) >= 1; allow_small_batch: bool = false; "
           "wait_for_incomplete: bool = false; timeout_ms: int = -1",
           unknown, barrier_take_kernels),
    OP_ROW("BarrierClose", "Takes no new keys; what is begun may still be completed.", "", "",
           "cancel_pending_enqueues: bool = false", none, barrier_close_kernels),
    OP_ROW("BarrierReadySize", "How many elements are ready.", "", "size: int32", "", scalar,
           ready_kernels),
    OP_ROW("BarrierIncompleteSize", "How many elements lack components.", "", "size: int32", "",
           scalar, incomplete_kernels),
};
const size_t troupe_ops_queue_count = sizeof(troupe_ops_queue) / sizeof(troupe_ops_queue[0]);
