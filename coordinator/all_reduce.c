/* The AllReduce actor: packs its inputs into one buffer, runs a ring schedule, unpacks.
 *
 * One more element of the buffer counts the ranks whose inputs are dead, so that a failure on one
 * rank reaches the others as dead outputs instead of a wait. Invariant: the schedule is run in
 * every iteration on every rank of its group, once at a time.
 *
 * When the run is interrupted, firings do not wait for the schedule: ranks may have come to several
 * AllReduces in different order, and would wait for one another. It goes on behind them, so that no
 * message stays without its partner, and the run ends after it. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/run.h"
#include "ops/tensor.h"
#include "transport/collective.h"

struct all_reduce_part {
    struct troupe_plan_part part;
    struct troupe_collective *collective;

    pthread_mutex_t lock;         /* guards the next three */
    struct troupe_firing *firing; /* that waits for the schedule; NULL: none */
    bool is_running;              /* the schedule */
    int owed;                     /* iterations that gave up before theirs was started */

    struct troupe_payload **outputs;
    enum troupe_dtype dtype;
    int64_t elements; /* of all inputs */
    int group_size;
    bool is_mean;
    void *buffer; /* elements + 1 */
};

static void add_floats(void *target, const void *source, int64_t elements)
{
    float *a = target;
    const float *b = source;
    for (int64_t i = 0; i < elements; i++)
        a[i] += b[i];
}

static void add_doubles(void *target, const void *source, int64_t elements)
{
    double *a = target;
    const double *b = source;
    for (int64_t i = 0; i < elements; i++)
        a[i] += b[i];
}

static const struct troupe_reduction sums[TROUPE_DTYPE_COUNT] = {
    [TROUPE_FLOAT32] = {sizeof(float), add_floats},
    [TROUPE_FLOAT64] = {sizeof(double), add_doubles},
};

static void scale(struct all_reduce_part *self)
{
    float *floats = self->buffer;
    double *doubles = self->buffer;
    for (int64_t i = 0; i < self->elements; i++)
        if (self->dtype == TROUPE_FLOAT32)
            floats[i] /= (float)self->group_size;
        else
            doubles[i] /= (double)self->group_size;
}

static void set_last(struct all_reduce_part *self, double value)
{
    if (self->dtype == TROUPE_FLOAT32)
        ((float *)self->buffer)[self->elements] = (float)value;
    else
        ((double *)self->buffer)[self->elements] = value;
}

static double get_last(const struct all_reduce_part *self)
{
    if (self->dtype == TROUPE_FLOAT32)
        return (double)((const float *)self->buffer)[self->elements];
    return ((const double *)self->buffer)[self->elements];
}

static void pack(struct all_reduce_part *self, struct troupe_payload *const *tokens, int count)
{
    char *to = self->buffer;
    for (int i = 0; i < count; i++) {
        const struct troupe_tensor *tensor = troupe_tensor_of_payload(tokens[i]);
        memcpy(to, troupe_tensor_data(tensor), troupe_tensor_bytes(tensor));
        to += troupe_tensor_bytes(tensor);
    }
    set_last(self, 0);
}

static enum troupe_status unpack(struct all_reduce_part *self)
{
    const struct troupe_node *node = &self->part.plan->session->graph->nodes[self->part.node];
    const char *from = self->buffer;
    for (int i = 0; i < node->output_count; i++) {
        struct troupe_tensor *tensor;
        const struct troupe_shape *shape = &node->output_shapes[i];
        enum troupe_status status =
            troupe_tensor_create(self->dtype, shape->rank, shape->dims, &tensor);
        if (status != TROUPE_OK) {
            while (i-- > 0)
                troupe_payload_unref(self->outputs[i]);
            return status;
        }
        memcpy(troupe_tensor_data_mutable(tensor), from, troupe_tensor_bytes(tensor));
        from += troupe_tensor_bytes(tensor);
        self->outputs[i] = troupe_tensor_payload(tensor);
    }
    return TROUPE_OK;
}

static void all_reduce_done(void *context, enum troupe_status status);

static void start_dead(struct all_reduce_part *self)
{
    memset(self->buffer, 0, (size_t)self->elements * troupe_dtype_size(self->dtype));
    set_last(self, 1);
    troupe_collective_start(self->collective, self->buffer, self->elements + 1, all_reduce_done,
                            self);
}

/* Ends the firing that has waited for the schedule. */
static void end_firing(struct all_reduce_part *self, struct troupe_firing *firing,
                       enum troupe_status status)
{
    if (status != TROUPE_OK) {
        troupe_firing_complete(firing, status, "the all-reduce lost a rank", NULL);
    } else if (get_last(self) > 0) {
        troupe_firing_complete(firing, TROUPE_ABORTED, "a failure on another rank", NULL);
    } else {
        if (self->is_mean)
            scale(self);
        status = unpack(self);
        troupe_firing_complete(firing, status, troupe_status_message(),
                               status == TROUPE_OK ? self->outputs : NULL);
    }
}

static void all_reduce_done(void *context, enum troupe_status status)
{
    struct all_reduce_part *self = context;
    struct troupe_request *request = self->part.plan->request;
    pthread_mutex_lock(&self->lock);
    struct troupe_firing *firing = self->firing;
    bool goes_on = self->owed > 0;
    self->firing = NULL;
    self->owed -= goes_on;
    self->is_running = goes_on;
    pthread_mutex_unlock(&self->lock);
    if (goes_on)
        start_dead(self);
    if (firing)
        end_firing(self, firing, status);
    else
        troupe_request_drop_duty(request);
}

/* Leaves the schedule to itself: it is a duty of the run, no longer of the firing. */
static void all_reduce_release(struct troupe_plan_part *part, uint64_t first)
{
    struct all_reduce_part *self = (struct all_reduce_part *)(void *)part;
    if (first > 0)
        return; /* the other ranks come to it */
    pthread_mutex_lock(&self->lock);
    struct troupe_firing *firing = self->firing;
    self->firing = NULL;
    if (firing)
        troupe_request_take_duty(part->plan->request);
    pthread_mutex_unlock(&self->lock);
    if (firing)
        troupe_firing_complete(firing, TROUPE_ABORTED, "the run was interrupted", NULL);
}

/* A firing of an interrupted run: owes the other ranks its part of the schedule. */
static enum troupe_status give_up(struct all_reduce_part *self)
{
    troupe_request_take_duty(self->part.plan->request);
    pthread_mutex_lock(&self->lock);
    bool starts = !self->is_running;
    self->is_running = true;
    self->owed += !starts;
    pthread_mutex_unlock(&self->lock);
    if (starts)
        start_dead(self);
    return troupe_status_fail(TROUPE_ABORTED, "the run was interrupted");
}

static enum troupe_status all_reduce_behave(void *context, struct troupe_firing *firing)
{
    struct all_reduce_part *self = context;
    const struct troupe_node *node = &self->part.plan->session->graph->nodes[self->part.node];
    bool is_dead = troupe_firing_is_dead(firing);
    if (is_dead && atomic_load(&self->part.plan->request->drains))
        return give_up(self);
    /* The inputs may be gone as soon as the watch can see the firing. */
    if (!is_dead)
        pack(self, troupe_firing_inputs(firing), node->input_count);
    pthread_mutex_lock(&self->lock);
    self->firing = troupe_firing_defer(firing);
    self->is_running = true;
    pthread_mutex_unlock(&self->lock);
    if (is_dead)
        start_dead(self);
    else
        troupe_collective_start(self->collective, self->buffer, self->elements + 1, all_reduce_done,
                                self);
    return TROUPE_OK;
}

static void all_reduce_destroy(struct troupe_plan_part *part)
{
    struct all_reduce_part *self = (struct all_reduce_part *)(void *)part;
    troupe_collective_destroy(self->collective);
    pthread_mutex_destroy(&self->lock);
    free(self->outputs);
    free(self->buffer);
    free(self);
}

static enum troupe_status measure(struct all_reduce_part *self, const struct troupe_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (!troupe_shape_is_known(&node->output_shapes[i]))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "AllReduce wants the shapes of its inputs known before the "
                                      "run; input %d's is not",
                                      i);
        self->elements += troupe_shape_elements(&node->output_shapes[i]);
    }
    size_t element = troupe_dtype_size(self->dtype);
    self->buffer = troupe_calloc((size_t)self->elements + 1, element);
    self->outputs = troupe_calloc((size_t)node->output_count + 1, sizeof(*self->outputs));
    return self->buffer && self->outputs ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

/* The position of this rank in the group, and the group as ints. */
static enum troupe_status read_group(const struct troupe_node *node, int size, int *group,
                                     int *position)
{
    const struct troupe_attr *attr = troupe_attr_find(node->attrs, node->attr_count, "group");
    *position = -1;
    for (size_t i = 0; i < attr->count; i++) {
        int64_t rank = attr->value.list_i[i];
        if (rank < 0 || rank >= size)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "AllReduce's group has rank %lld: there are ranks 0 to %d",
                                      (long long)rank, size - 1);
        group[i] = (int)rank;
        if (rank == node->rank)
            *position = (int)i;
    }
    if (*position < 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "AllReduce is on rank %d, which its group does not have",
                                  node->rank);
    return TROUPE_OK;
}

static enum troupe_status make_collective(struct all_reduce_part *self,
                                          const struct troupe_node *node, int tag)
{
    struct troupe_transport *transport = self->part.plan->session->runtime->transport;
    const struct troupe_attr *attr = troupe_attr_find(node->attrs, node->attr_count, "group");
    int *group = troupe_calloc(attr->count + 1, sizeof(int)), position;
    if (!group)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = read_group(node, transport->size, group, &position);
    struct troupe_schedule *schedule = NULL;
    if (status == TROUPE_OK)
        status = troupe_schedule_ring_allreduce(position, (int)attr->count, &schedule);
    if (status == TROUPE_OK)
        status = troupe_collective_create(transport, schedule, group, tag, &sums[self->dtype],
                                          &self->collective);
    self->group_size = (int)attr->count;
    free(group);
    return status;
}

enum troupe_status troupe_all_reduce_part_create(struct troupe_plan *plan, int number, int tag,
                                                 struct troupe_plan_part **out,
                                                 struct troupe_actor_spec *spec)
{
    const struct troupe_node *node = &plan->session->graph->nodes[number];
    struct all_reduce_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    self->part = (struct troupe_plan_part){.plan = plan,
                                           .node = number,
                                           .destroy = all_reduce_destroy,
                                           .release = all_reduce_release,
                                           .role = TROUPE_PART_COLLECTIVE,
                                           .tag = tag};
    pthread_mutex_init(&self->lock, NULL);
    self->dtype = node->output_dtypes[0];
    const struct troupe_attr *reduction =
        troupe_attr_find(node->attrs, node->attr_count, "reduction");
    self->is_mean = strcmp(reduction->value.s, "mean") == 0;
    enum troupe_status status = TROUPE_OK;
    if (self->dtype != TROUPE_FLOAT32 && self->dtype != TROUPE_FLOAT64)
        status =
            troupe_status_fail(TROUPE_UNIMPLEMENTED, "AllReduce takes float32 and float64, not %s",
                               troupe_dtype_name(self->dtype));
    if (status == TROUPE_OK)
        status = measure(self, node);
    if (status == TROUPE_OK)
        status = make_collective(self, node, tag);
    if (status != TROUPE_OK)
        goto destroy;
    spec->name = node->name;
    spec->behave = all_reduce_behave;
    spec->takes_dead = true;
    spec->context = self;
    *out = &self->part;
    return TROUPE_OK;

destroy:
    all_reduce_destroy(&self->part);
    char text[TROUPE_NODE_TEXT_MAX];
    return troupe_status_prefix(status,
                                "%s: ", troupe_node_describe(plan->session->graph, number, text));
}
