/* Tensors. Invariant: the elements lie within the buffer, and `elements` is the product of
 * `dims`; a buffer of counted elements drops them with its last reference, however many tensors
 * view it. */
#include <string.h>

#include "base/memory.h"
#include "ops/tensor.h"

static void counted_release(void *context, void *data, size_t bytes)
{
    (void)context;
    struct troupe_payload **elements = data;
    for (size_t i = 0; i < bytes / sizeof(*elements); i++)
        troupe_payload_unref(elements[i]);
    troupe_memory_free(data, bytes);
}

static void tensor_destroy(struct troupe_payload *payload)
{
    struct troupe_tensor *tensor = troupe_container_of(payload, struct troupe_tensor, payload);
    troupe_buffer_unref(tensor->buffer);
    troupe_memory_free(tensor, sizeof(*tensor));
}

/* Checks dtype and dims, and multiplies. */
static enum troupe_status tensor_measure(enum troupe_dtype dtype, int rank, const int64_t *dims,
                                         int64_t *elements_out, size_t *bytes_out)
{
    size_t size = troupe_dtype_size(dtype);
    if (size == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor wants a dtype, got number %d",
                                  (int)dtype);
    if (rank < 0 || rank > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "rank %d: wants 0 to %d", rank,
                                  TROUPE_RANK_MAX);
    /* The product of the sizes that are not 0 is bounded too, so that no stride overflows. */
    int64_t elements = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "dimension %d is %lld: wants 0 or more", i,
                                      (long long)dims[i]);
        empty |= dims[i] == 0;
        if (dims[i] > 0 && __builtin_mul_overflow(elements, dims[i], &elements))
            elements = INT64_MAX;
    }
    if (elements > (int64_t)(INT64_MAX / 2 / (int64_t)size))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a tensor's sizes multiply to more than memory can hold");
    *elements_out = empty ? 0 : elements;
    *bytes_out = (size_t)*elements_out * size;
    return TROUPE_OK;
}

/* Makes a tensor that takes over the caller's reference to `buffer`. */
static enum troupe_status tensor_make(enum troupe_dtype dtype, int rank, const int64_t *dims,
                                      int64_t elements, struct troupe_buffer *buffer,
                                      struct troupe_tensor **out)
{
    struct troupe_tensor *tensor = troupe_memory_alloc(sizeof(*tensor));
    if (!tensor)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_payload_init(&tensor->payload, tensor_destroy);
    tensor->dtype = dtype;
    tensor->rank = rank;
    for (int i = 0; i < TROUPE_RANK_MAX; i++)
        tensor->dims[i] = i < rank ? dims[i] : 1;
    tensor->elements = elements;
    tensor->buffer = buffer;
    tensor->offset = 0;
    *out = tensor;
    return TROUPE_OK;
}

static enum troupe_status counted_create(size_t bytes, struct troupe_buffer **out)
{
    void *data = troupe_memory_alloc(bytes);
    if (!data)
        return TROUPE_RESOURCE_EXHAUSTED;
    memset(data, 0, bytes);
    enum troupe_status status = troupe_buffer_wrap(data, bytes, counted_release, NULL, out);
    if (status != TROUPE_OK)
        troupe_memory_free(data, bytes);
    return status;
}

enum troupe_status troupe_tensor_create(enum troupe_dtype dtype, int rank, const int64_t *dims,
                                        struct troupe_tensor **out)
{
    int64_t elements;
    size_t bytes;
    struct troupe_buffer *buffer;
    enum troupe_status status = tensor_measure(dtype, rank, dims, &elements, &bytes);
    if (status == TROUPE_OK)
        status = troupe_dtype_is_counted(dtype) ? counted_create(bytes, &buffer)
                                                : troupe_buffer_create(bytes, &buffer);
    if (status != TROUPE_OK)
        return status;
    status = tensor_make(dtype, rank, dims, elements, buffer, out);
    if (status != TROUPE_OK)
        troupe_buffer_unref(buffer);
    return status;
}

enum troupe_status troupe_tensor_from_data(enum troupe_dtype dtype, int rank, const int64_t *dims,
                                           const void *data, struct troupe_tensor **out)
{
    if (troupe_dtype_is_counted(dtype))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s tensors are not made from bytes: wants a number's dtype",
                                  troupe_dtype_name(dtype));
    struct troupe_tensor *tensor;
    enum troupe_status status = troupe_tensor_create(dtype, rank, dims, &tensor);
    if (status != TROUPE_OK)
        return status;
    if (troupe_tensor_bytes(tensor) > 0)
        memcpy(tensor->buffer->data, data, troupe_tensor_bytes(tensor));
    *out = tensor;
    return TROUPE_OK;
}

enum troupe_status troupe_tensor_view(enum troupe_dtype dtype, int rank, const int64_t *dims,
                                      struct troupe_buffer *buffer, size_t offset,
                                      struct troupe_tensor **out)
{
    int64_t elements;
    size_t bytes;
    enum troupe_status status = tensor_measure(dtype, rank, dims, &elements, &bytes);
    if (status != TROUPE_OK)
        return status;
    if (offset % troupe_dtype_size(dtype) != 0 || offset > buffer->bytes ||
        bytes > buffer->bytes - offset)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%zu bytes of %s from byte %zu do not lie in a buffer of %zu",
                                  bytes, troupe_dtype_name(dtype), offset, buffer->bytes);
    struct troupe_tensor *tensor;
    status = tensor_make(dtype, rank, dims, elements, troupe_buffer_ref(buffer), &tensor);
    if (status != TROUPE_OK) {
        troupe_buffer_unref(buffer);
        return status;
    }
    tensor->offset = offset;
    *out = tensor;
    return TROUPE_OK;
}

enum troupe_status troupe_tensor_reshape(struct troupe_tensor *tensor, int rank,
                                         const int64_t *dims, struct troupe_tensor **out)
{
    int64_t elements;
    size_t bytes;
    enum troupe_status status = tensor_measure(tensor->dtype, rank, dims, &elements, &bytes);
    if (status != TROUPE_OK)
        return status;
    if (elements != tensor->elements)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a tensor of %lld elements does not reshape to one of %lld",
                                  (long long)tensor->elements, (long long)elements);
    return troupe_tensor_view(tensor->dtype, rank, dims, tensor->buffer, tensor->offset, out);
}

enum troupe_status troupe_tensor_rows(struct troupe_tensor *tensor, int64_t begin, int64_t end,
                                      struct troupe_tensor **out)
{
    if (tensor->rank == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a scalar has no rows");
    if (begin < 0 || end < begin || end > tensor->dims[0])
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "rows %lld to %lld: wants 0 to %lld",
                                  (long long)begin, (long long)end, (long long)tensor->dims[0]);
    int64_t dims[TROUPE_RANK_MAX];
    memcpy(dims, tensor->dims, sizeof(dims));
    dims[0] = end - begin;
    size_t row = tensor->dims[0] > 0 ? troupe_tensor_bytes(tensor) / (size_t)tensor->dims[0] : 0;
    return troupe_tensor_view(tensor->dtype, tensor->rank, dims, tensor->buffer,
                              tensor->offset + (size_t)begin * row, out);
}

enum troupe_status troupe_tensor_copy(const struct troupe_tensor *tensor,
                                      struct troupe_tensor **out)
{
    struct troupe_tensor *copy;
    enum troupe_status status =
        troupe_tensor_create(tensor->dtype, tensor->rank, tensor->dims, &copy);
    if (status != TROUPE_OK)
        return status;
    if (tensor->elements > 0)
        memcpy(copy->buffer->data, troupe_tensor_data(tensor), troupe_tensor_bytes(tensor));
    troupe_tensor_share_elements(copy);
    *out = copy;
    return TROUPE_OK;
}

void troupe_tensor_share_elements(struct troupe_tensor *tensor)
{
    if (!troupe_dtype_is_counted(tensor->dtype))
        return;
    struct troupe_payload *const *elements = troupe_tensor_data(tensor);
    for (int64_t i = 0; i < tensor->elements; i++)
        troupe_payload_ref(elements[i], 1);
}

struct troupe_tensor *troupe_tensor_ref(struct troupe_tensor *tensor)
{
    if (tensor)
        troupe_payload_ref(&tensor->payload, 1);
    return tensor;
}

void troupe_tensor_unref(struct troupe_tensor *tensor)
{
    if (tensor)
        troupe_payload_unref(&tensor->payload);
}

bool troupe_tensor_is_unique(const struct troupe_tensor *tensor)
{
    /* Acquire: partner of the release in troupe_payload_unref, so that a writer in place comes
     * after the last read under another reference. */
    return atomic_load_explicit(&tensor->payload.references, memory_order_acquire) == 1 &&
           !(tensor->payload.flags & TROUPE_PAYLOAD_STATIC) &&
           troupe_buffer_is_unique(tensor->buffer);
}

struct troupe_payload *troupe_tensor_payload(struct troupe_tensor *tensor)
{
    return tensor ? &tensor->payload : NULL;
}

struct troupe_tensor *troupe_tensor_of_payload(struct troupe_payload *payload)
{
    return payload ? troupe_container_of(payload, struct troupe_tensor, payload) : NULL;
}

struct troupe_tensor *troupe_tensor_dead(void)
{
    return troupe_tensor_of_payload(&troupe_payload_dead);
}

bool troupe_tensor_is_dead(const struct troupe_tensor *tensor)
{
    return tensor != NULL && &tensor->payload == &troupe_payload_dead;
}

bool troupe_tensor_is_valid(const struct troupe_tensor *tensor)
{
    int64_t elements;
    size_t bytes;
    return tensor_measure(tensor->dtype, tensor->rank, tensor->dims, &elements, &bytes) ==
               TROUPE_OK &&
           elements == tensor->elements && tensor->offset <= tensor->buffer->bytes &&
           bytes <= tensor->buffer->bytes - tensor->offset;
}

enum troupe_dtype troupe_tensor_dtype(const struct troupe_tensor *tensor)
{
    return tensor->dtype;
}

int troupe_tensor_rank(const struct troupe_tensor *tensor)
{
    return tensor->rank;
}

const int64_t *troupe_tensor_dims(const struct troupe_tensor *tensor)
{
    return tensor->dims;
}

int64_t troupe_tensor_elements(const struct troupe_tensor *tensor)
{
    return tensor->elements;
}

size_t troupe_tensor_bytes(const struct troupe_tensor *tensor)
{
    return (size_t)tensor->elements * troupe_dtype_size(tensor->dtype);
}

const void *troupe_tensor_data(const struct troupe_tensor *tensor)
{
    return (const char *)tensor->buffer->data + tensor->offset;
}

void *troupe_tensor_data_mutable(struct troupe_tensor *tensor)
{
    return (char *)tensor->buffer->data + tensor->offset;
}
