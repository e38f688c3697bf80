/* Send and Receive actors: one pair for each value that crosses between two ranks.
 *
 * An edge whose shape is known is one message of exactly its bytes, received straight into the
 * consumer's tensor and posted when the iteration is admitted; another length stands for a dead
 * token. Other edges send a header first, on a tag of its own so that headers posted ahead never
 * take a payload; strings and lists go packed into bytes (wire_pack.h). Iterations in flight have
 * tags of their own: their messages are posted in any order. Invariants: both ends run in every
 * iteration, dead ones included, so that messages always pair up; of all that goes to a rank in an
 * iteration one edge paces, and of every `window` of its sends the last is synchronous, so that a
 * producer is never more than two windows ahead of its consumer. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/plan.h"
#include "coordinator/wire.h"
#include "coordinator/wire_pack.h"
#include "ops/tensor.h"

/* Shortest receive: room for a dead token's length, which differs from the live one. */
#define TROUPE_DEAD_CAPACITY 2

static size_t dead_bytes(const struct troupe_crossing *crossing)
{
    return crossing->bytes == 1 ? 2 : 1;
}

/* The first tag of an iteration's slot. */
static int slot_tag(const struct troupe_plan *plan, const struct troupe_crossing *crossing,
                    int slot)
{
    int window = plan->session->window, width = crossing->is_static ? 1 : 2;
    return plan->first_tag + crossing->tag * window + slot * width;
}

/* Headers share messages, and so do tensors that are known to be as short. */
_Static_assert(TROUPE_WIRE_TENSOR_HEADER <= TROUPE_TRANSFER_SMALL, "a header is small");
static bool is_small(const struct troupe_crossing *crossing)
{
    return crossing->is_static && crossing->bytes <= TROUPE_TRANSFER_SMALL;
}

/* Describes why a firing failed, for the thread's message. */
static void complete_failed(struct troupe_firing *firing, enum troupe_status status, int peer,
                            const char *what)
{
    (void)troupe_status_fail(status, "%s rank %d: %s", what, peer, troupe_status_name(status));
    troupe_firing_complete(firing, status, troupe_status_message(), NULL);
}

/* ---- Send ---- */

struct send_slot {
    struct send_part *part;
    struct troupe_firing *firing;
    struct troupe_transfer header, payload;
    struct troupe_tensor *packed; /* what is sent in place of a tensor of counted elements */
    _Atomic(int) outstanding;
    _Atomic(int) status; /* the first failure */
    unsigned char header_bytes[TROUPE_WIRE_TENSOR_HEADER];
};

struct send_part {
    struct troupe_plan_part part;
    const struct troupe_crossing *crossing;
    int slot_count;
    struct send_slot slots[];
};

static const unsigned char dead_data[TROUPE_DEAD_CAPACITY];

static void send_finish(struct send_slot *slot, enum troupe_status status)
{
    int expected = TROUPE_OK;
    if (status != TROUPE_OK)
        atomic_compare_exchange_strong(&slot->status, &expected, (int)status);
    if (atomic_fetch_sub(&slot->outstanding, 1) != 1)
        return;
    status = (enum troupe_status)atomic_load(&slot->status);
    troupe_tensor_unref(slot->packed);
    slot->packed = NULL;
    if (status == TROUPE_OK)
        troupe_firing_complete(slot->firing, TROUPE_OK, NULL, NULL);
    else
        complete_failed(slot->firing, status, slot->part->crossing->to_rank, "sending to");
}

static void send_header_done(struct troupe_transfer *transfer, enum troupe_status status,
                             size_t bytes)
{
    (void)bytes;
    send_finish(troupe_container_of(transfer, struct send_slot, header), status);
}

static void send_payload_done(struct troupe_transfer *transfer, enum troupe_status status,
                              size_t bytes)
{
    (void)bytes;
    send_finish(troupe_container_of(transfer, struct send_slot, payload), status);
}

static void *without_const(const void *data)
{
    /* A transfer has one pointer for both directions; a send only reads. */
    void *result;
    memcpy(&result, &data, sizeof(result));
    return result;
}

static void send_static(struct send_slot *slot, const struct troupe_tensor *tensor, bool dead)
{
    struct troupe_transport *transport = slot->part->part.plan->session->runtime->transport;
    const struct troupe_crossing *crossing = slot->part->crossing;
    const void *data = dead || crossing->is_control ? dead_data : troupe_tensor_data(tensor);
    slot->payload.data = without_const(data);
    slot->payload.bytes = dead ? dead_bytes(crossing) : crossing->bytes;
    atomic_store(&slot->outstanding, 1);
    transport->ops->send(transport, &slot->payload);
}

static void send_dynamic(struct send_slot *slot, const struct troupe_tensor *tensor, bool dead)
{
    struct troupe_transport *transport = slot->part->part.plan->session->runtime->transport;
    troupe_wire_encode_header(tensor, dead, slot->header_bytes);
    slot->header.data = slot->header_bytes;
    slot->header.bytes = sizeof(slot->header_bytes);
    bool with_payload = !dead && troupe_tensor_bytes(tensor) > 0;
    atomic_store(&slot->outstanding, with_payload ? 2 : 1);
    transport->ops->send(transport, &slot->header);
    if (!with_payload)
        return;
    slot->payload.data = without_const(troupe_tensor_data(tensor));
    slot->payload.bytes = troupe_tensor_bytes(tensor);
    transport->ops->send(transport, &slot->payload);
}

static enum troupe_status send_behave(void *context, struct troupe_firing *firing)
{
    struct send_part *self = context;
    struct send_slot *slot = &self->slots[troupe_firing_slot(firing)];
    const struct troupe_tensor *tensor = NULL;
    bool dead = troupe_firing_is_dead(firing);
    /* A token goes as it is, also in an iteration that has failed meanwhile: by it ranks decide
     * together whether a loop goes on. */
    if (!self->crossing->is_control) {
        struct troupe_payload *token = troupe_firing_inputs(firing)[0];
        dead = token == &troupe_payload_dead;
        tensor = dead ? NULL : troupe_tensor_of_payload(token);
    }
    if (tensor && self->crossing->is_static && troupe_tensor_bytes(tensor) != self->crossing->bytes)
        return troupe_status_fail(TROUPE_INTERNAL, "a tensor of %zu bytes on an edge of %zu",
                                  troupe_tensor_bytes(tensor), self->crossing->bytes);
    enum troupe_status status = TROUPE_OK;
    if (tensor && troupe_dtype_is_counted(troupe_tensor_dtype(tensor))) {
        status = troupe_wire_pack(tensor, &slot->packed);
        tensor = slot->packed;
        dead = status != TROUPE_OK; /* the other rank waits for something */
    }
    atomic_store(&slot->status, (int)status);
    slot->firing = troupe_firing_defer(firing);
    if (self->crossing->is_static)
        send_static(slot, tensor, dead);
    else
        send_dynamic(slot, tensor, dead);
    return TROUPE_OK;
}

static void send_part_destroy(struct troupe_plan_part *part)
{
    struct send_part *self = (struct send_part *)(void *)part;
    struct troupe_transport *transport = part->plan->session->runtime->transport;
    for (int i = 0; i < self->slot_count; i++) {
        troupe_transfer_release(transport, &self->slots[i].header);
        troupe_transfer_release(transport, &self->slots[i].payload);
        troupe_tensor_unref(self->slots[i].packed);
    }
    free(self);
}

enum troupe_status troupe_send_part_create(struct troupe_plan *plan, int number, bool paces,
                                           struct troupe_plan_part **out,
                                           struct troupe_actor_spec *spec)
{
    const struct troupe_crossing *crossing = &plan->partition.crossings[number];
    int slot_count = plan->session->window * crossing->slots;
    int window =
        crossing->frame > 0 ? plan->partition.use.window[crossing->frame] : plan->session->window;
    struct send_part *self =
        troupe_calloc(1, sizeof(*self) + (size_t)slot_count * sizeof(struct send_slot));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    self->part = (struct troupe_plan_part){.plan = plan,
                                           .node = crossing->value.node,
                                           .destroy = send_part_destroy,
                                           .role = TROUPE_PART_SEND,
                                           .tag = slot_tag(plan, crossing, 0),
                                           .peer = crossing->to_rank};
    self->crossing = crossing;
    self->slot_count = slot_count;
    for (int i = 0; i < slot_count; i++) {
        struct send_slot *slot = &self->slots[i];
        int tag = slot_tag(plan, crossing, i), payload_tag = crossing->is_static ? tag : tag + 1;
        slot->part = self;
        slot->header = (struct troupe_transfer){
            .done = send_header_done, .peer = crossing->to_rank, .tag = tag, .is_small = true};
        slot->payload = (struct troupe_transfer){.done = send_payload_done,
                                                 .peer = crossing->to_rank,
                                                 .tag = payload_tag,
                                                 .is_small = is_small(crossing)};
        struct troupe_transfer *paced = crossing->is_static ? &slot->payload : &slot->header;
        paced->synchronous = paces && i % window == window - 1;
    }
    spec->name = plan->session->graph->nodes[crossing->value.node].name;
    spec->behave = send_behave;
    spec->takes_dead = true;
    spec->context = self;
    *out = &self->part;
    return TROUPE_OK;
}

/* ---- Receive ---- */

struct receive_slot {
    struct receive_part *part;
    struct troupe_firing *firing;
    struct troupe_tensor *tensor;
    struct troupe_transfer header, payload;
    unsigned char header_bytes[TROUPE_WIRE_TENSOR_HEADER];
};

struct receive_part {
    struct troupe_plan_part part;
    const struct troupe_crossing *crossing;
    int slot_count;
    struct receive_slot slots[];
};

static void receive_drop(struct receive_slot *slot)
{
    troupe_tensor_unref(slot->tensor);
    slot->tensor = NULL;
}

static void receive_live(struct receive_slot *slot)
{
    struct troupe_payload *output = troupe_tensor_payload(slot->tensor);
    slot->tensor = NULL;
    troupe_firing_complete(slot->firing, TROUPE_OK, NULL, &output);
}

/* A dead token from another rank: of a branch not taken, or of a failure that is reported there. */
static void receive_dead(struct receive_slot *slot)
{
    struct troupe_payload *output = &troupe_payload_dead;
    receive_drop(slot);
    troupe_firing_complete(slot->firing, TROUPE_OK, NULL, &output);
}

static void receive_failed(struct receive_slot *slot, enum troupe_status status)
{
    receive_drop(slot);
    complete_failed(slot->firing, status, slot->part->crossing->from_rank, "receiving from");
}

/* True when the edge's tensors come packed, as vectors of bytes. */
static bool is_packed(const struct receive_slot *slot)
{
    const struct troupe_crossing *crossing = slot->part->crossing;
    const struct troupe_graph *graph = slot->part->part.plan->session->graph;
    return !crossing->is_control &&
           troupe_dtype_is_counted(
               graph->nodes[crossing->value.node].output_dtypes[crossing->value.port]);
}

/* True when a tensor of this dtype and shape is one that the graph can send. */
static bool is_expected(const struct receive_slot *slot, enum troupe_dtype dtype,
                        const struct troupe_shape *shape)
{
    const struct troupe_crossing *crossing = slot->part->crossing;
    const struct troupe_graph *graph = slot->part->part.plan->session->graph;
    const struct troupe_node *node = &graph->nodes[crossing->value.node];
    struct troupe_shape merged;
    return dtype == node->output_dtypes[crossing->value.port] &&
           troupe_shape_merge(shape, &node->output_shapes[crossing->value.port], &merged) ==
               TROUPE_OK;
}

/* Puts the tensor that the received bytes are in their place. */
static enum troupe_status unpack_received(struct receive_slot *slot)
{
    struct troupe_tensor *tensor;
    enum troupe_status status = troupe_wire_unpack(slot->tensor, &tensor);
    if (status != TROUPE_OK)
        return status;
    receive_drop(slot);
    slot->tensor = tensor;
    struct troupe_shape shape = troupe_shape_of(tensor);
    return is_expected(slot, tensor->dtype, &shape) ? TROUPE_OK : TROUPE_DATA_LOSS;
}

static void receive_payload_done(struct troupe_transfer *transfer, enum troupe_status status,
                                 size_t bytes)
{
    struct receive_slot *slot = troupe_container_of(transfer, struct receive_slot, payload);
    const struct troupe_crossing *crossing = slot->part->crossing;
    size_t wanted = crossing->is_static ? crossing->bytes : troupe_tensor_bytes(slot->tensor);
    if (status != TROUPE_OK) {
        receive_failed(slot, status);
    } else if (bytes != wanted) {
        receive_dead(slot);
    } else if (crossing->is_control) {
        troupe_firing_complete(slot->firing, TROUPE_OK, NULL, NULL);
    } else {
        if (transfer->data == slot->header_bytes)
            memcpy(troupe_tensor_data_mutable(slot->tensor), slot->header_bytes, bytes);
        status = is_packed(slot) ? unpack_received(slot) : TROUPE_OK;
        if (status == TROUPE_OK)
            receive_live(slot);
        else
            receive_failed(slot, status);
    }
}

/* Makes room for the tensor that a header announces, which must be one that the graph can send. */
static enum troupe_status make_received(struct receive_slot *slot,
                                        const struct troupe_wire_tensor *header)
{
    /* Packed elements are more than no bytes. */
    bool is_bytes =
        header->dtype == TROUPE_UINT8 && header->shape.rank == 1 && header->shape.dims[0] > 0;
    if (is_packed(slot) ? !is_bytes : !is_expected(slot, header->dtype, &header->shape))
        return TROUPE_DATA_LOSS;
    return troupe_tensor_create(header->dtype, header->shape.rank, header->shape.dims,
                                &slot->tensor);
}

static void receive_header_done(struct troupe_transfer *transfer, enum troupe_status status,
                                size_t bytes)
{
    struct receive_slot *slot = troupe_container_of(transfer, struct receive_slot, header);
    struct troupe_wire_tensor header = {0};
    if (status == TROUPE_OK)
        status = troupe_wire_decode_header(slot->header_bytes, bytes, &header);
    if (status == TROUPE_OK && !header.dead)
        status = make_received(slot, &header);
    if (status != TROUPE_OK) {
        receive_failed(slot, status);
    } else if (header.dead) {
        receive_dead(slot);
    } else if (troupe_tensor_bytes(slot->tensor) == 0) {
        receive_live(slot);
    } else {
        struct troupe_transport *transport = slot->part->part.plan->session->runtime->transport;
        slot->payload.data = troupe_tensor_data_mutable(slot->tensor);
        slot->payload.bytes = troupe_tensor_bytes(slot->tensor);
        transport->ops->receive(transport, &slot->payload);
    }
}

static enum troupe_status receive_static(struct receive_slot *slot)
{
    const struct troupe_crossing *crossing = slot->part->crossing;
    if (!crossing->is_control) {
        const struct troupe_graph *graph = slot->part->part.plan->session->graph;
        const struct troupe_node *node = &graph->nodes[crossing->value.node];
        const struct troupe_shape *shape = &node->output_shapes[crossing->value.port];
        enum troupe_status status = troupe_tensor_create(node->output_dtypes[crossing->value.port],
                                                         shape->rank, shape->dims, &slot->tensor);
        if (status != TROUPE_OK)
            return status;
    }
    if (crossing->bytes < TROUPE_DEAD_CAPACITY) {
        slot->payload.data = slot->header_bytes;
        slot->payload.bytes = TROUPE_DEAD_CAPACITY;
    } else {
        slot->payload.data = troupe_tensor_data_mutable(slot->tensor);
        slot->payload.bytes = crossing->bytes;
    }
    return TROUPE_OK;
}

static enum troupe_status receive_behave(void *context, struct troupe_firing *firing)
{
    struct receive_part *self = context;
    struct troupe_transport *transport = self->part.plan->session->runtime->transport;
    struct receive_slot *slot = &self->slots[troupe_firing_slot(firing)];
    struct troupe_transfer *transfer = &slot->header;
    if (self->crossing->is_static) {
        enum troupe_status status = receive_static(slot);
        if (status != TROUPE_OK)
            return status;
        transfer = &slot->payload;
    }
    slot->firing = troupe_firing_defer(firing);
    transport->ops->receive(transport, transfer);
    return TROUPE_OK;
}

static void receive_part_destroy(struct troupe_plan_part *part)
{
    struct receive_part *self = (struct receive_part *)(void *)part;
    struct troupe_transport *transport = part->plan->session->runtime->transport;
    for (int i = 0; i < self->slot_count; i++) {
        troupe_transfer_release(transport, &self->slots[i].header);
        troupe_transfer_release(transport, &self->slots[i].payload);
        receive_drop(&self->slots[i]);
    }
    free(self);
}

enum troupe_status troupe_receive_part_create(struct troupe_plan *plan, int number,
                                              struct troupe_plan_part **out,
                                              struct troupe_actor_spec *spec)
{
    const struct troupe_crossing *crossing = &plan->partition.crossings[number];
    int slot_count = plan->session->window * crossing->slots;
    struct receive_part *self =
        troupe_calloc(1, sizeof(*self) + (size_t)slot_count * sizeof(struct receive_slot));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    self->part = (struct troupe_plan_part){.plan = plan,
                                           .node = crossing->value.node,
                                           .destroy = receive_part_destroy,
                                           .role = TROUPE_PART_RECEIVE,
                                           .tag = slot_tag(plan, crossing, 0),
                                           .peer = crossing->from_rank};
    self->crossing = crossing;
    self->slot_count = slot_count;
    for (int i = 0; i < slot_count; i++) {
        struct receive_slot *slot = &self->slots[i];
        int tag = slot_tag(plan, crossing, i), payload_tag = crossing->is_static ? tag : tag + 1;
        slot->part = self;
        slot->header = (struct troupe_transfer){.done = receive_header_done,
                                                .data = slot->header_bytes,
                                                .bytes = sizeof(slot->header_bytes),
                                                .peer = crossing->from_rank,
                                                .tag = tag,
                                                .is_small = true};
        slot->payload = (struct troupe_transfer){.done = receive_payload_done,
                                                 .peer = crossing->from_rank,
                                                 .tag = payload_tag,
                                                 .is_small = is_small(crossing)};
    }
    spec->name = plan->session->graph->nodes[crossing->value.node].name;
    spec->behave = receive_behave;
    spec->takes_dead = true;
    spec->context = self;
    *out = &self->part;
    return TROUPE_OK;
}
