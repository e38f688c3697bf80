/* Packing of counted elements. Every number is 8 bytes, low byte first:
 *
 *     tensor:  dtype, rank, sizes, elements
 *     element: its bytes (numbers); length, bytes (string); 0, or 1 and a list (variant)
 *     list:    dtype, rank + 1 (0: not known), sizes + 1, max_length + 1, length, items
 *     item:    0 (not set), or 1 and a tensor
 *
 * Invariant: there is one form of each value, so that what unpacks packs to the same bytes. */
#include "coordinator/wire_pack.h"

#include <string.h>

#include "base/bytes.h"
#include "coordinator/wire.h"
#include "ops/string.h"
#include "ops/tensor.h"
#include "ops/tensor_list.h"

/* ---- Packing: once to measure, once to write ---- */

struct packer {
    unsigned char *data; /* NULL: only count */
    size_t bytes;
};

static void put_bytes(struct packer *packer, const void *bytes, size_t count)
{
    if (packer->data && count > 0)
        memcpy(packer->data + packer->bytes, bytes, count);
    packer->bytes += count;
}

static void put_number(struct packer *packer, int64_t value)
{
    unsigned char bytes[8];
    troupe_bytes_put_u64(bytes, (uint64_t)value);
    put_bytes(packer, bytes, sizeof(bytes));
}

static enum troupe_status pack_tensor(struct packer *packer, const struct troupe_tensor *tensor);

static enum troupe_status pack_list(struct packer *packer, const struct troupe_tensor_list *list)
{
    put_number(packer, list->dtype);
    put_number(packer, list->element_shape.rank + 1);
    for (int i = 0; i < list->element_shape.rank; i++)
        put_number(packer, list->element_shape.dims[i] + 1);
    put_number(packer, list->max_length + 1);
    put_number(packer, list->length);
    enum troupe_status status = TROUPE_OK;
    for (int64_t i = 0; i < list->length && status == TROUPE_OK; i++) {
        put_number(packer, list->elements[i] ? 1 : 0);
        if (list->elements[i])
            status = pack_tensor(packer, list->elements[i]);
    }
    return status;
}

static enum troupe_status pack_element(struct packer *packer, enum troupe_dtype dtype,
                                       struct troupe_payload *const *element)
{
    if (dtype == TROUPE_STRING) {
        const struct troupe_string *string = *(struct troupe_string *const *)(const void *)element;
        put_number(packer, (int64_t)troupe_string_length(string));
        put_bytes(packer, troupe_string_data(string), troupe_string_length(string));
        return TROUPE_OK;
    }
    const struct troupe_tensor_list *list = troupe_tensor_list_of(*element);
    if (*element && !list)
        return troupe_status_fail(TROUPE_UNIMPLEMENTED,
                                  "a %s lives on its rank and does not travel",
                                  troupe_dtype_name(dtype));
    put_number(packer, list ? 1 : 0);
    return list ? pack_list(packer, list) : TROUPE_OK;
}

static enum troupe_status pack_tensor(struct packer *packer, const struct troupe_tensor *tensor)
{
    put_number(packer, tensor->dtype);
    put_number(packer, tensor->rank);
    for (int i = 0; i < tensor->rank; i++)
        put_number(packer, tensor->dims[i]);
    if (!troupe_dtype_is_counted(tensor->dtype)) {
        put_bytes(packer, troupe_tensor_data(tensor), troupe_tensor_bytes(tensor));
        return TROUPE_OK;
    }
    struct troupe_payload *const *elements = troupe_tensor_data(tensor);
    enum troupe_status status = TROUPE_OK;
    for (int64_t i = 0; i < tensor->elements && status == TROUPE_OK; i++)
        status = pack_element(packer, tensor->dtype, &elements[i]);
    return status;
}

enum troupe_status troupe_wire_pack(const struct troupe_tensor *tensor, struct troupe_tensor **out)
{
    struct packer packer = {.data = NULL};
    struct troupe_tensor *bytes;
    enum troupe_status status = pack_tensor(&packer, tensor);
    int64_t count = (int64_t)packer.bytes;
    if (status == TROUPE_OK)
        status = troupe_tensor_create(TROUPE_UINT8, 1, &count, &bytes);
    if (status != TROUPE_OK)
        return status;
    packer = (struct packer){.data = troupe_tensor_data_mutable(bytes)};
    status = pack_tensor(&packer, tensor);
    if (status != TROUPE_OK) {
        troupe_tensor_unref(bytes);
        return status;
    }
    *out = bytes;
    return TROUPE_OK;
}

/* ---- Unpacking ---- */

static enum troupe_status malformed(const struct troupe_wire_reader *reader, const char *what)
{
    return troupe_status_fail(TROUPE_DATA_LOSS, "a packed tensor has no %s before byte %zu", what,
                              reader->position);
}

/* A number from `least` to `most`. */
static bool get_number(struct troupe_wire_reader *reader, int64_t least, int64_t most,
                       int64_t *value)
{
    uint64_t number = troupe_wire_get_u64(reader);
    if (reader->failed || number > INT64_MAX || (int64_t)number < least || (int64_t)number > most)
        return false;
    *value = (int64_t)number;
    return true;
}

static size_t bytes_left(const struct troupe_wire_reader *reader)
{
    return reader->failed ? 0 : reader->bytes - reader->position;
}

/* A dtype of elements that can be here. */
static bool get_dtype(struct troupe_wire_reader *reader, enum troupe_dtype *dtype)
{
    int64_t number;
    if (!get_number(reader, 1, TROUPE_DTYPE_COUNT - 1, &number) || number == TROUPE_RESOURCE ||
        troupe_dtype_size((enum troupe_dtype)number) == 0)
        return false;
    *dtype = (enum troupe_dtype)number;
    return true;
}

/* A rank and sizes, each `more` above what they stand for. */
static bool get_shape(struct troupe_wire_reader *reader, int64_t more, struct troupe_shape *shape)
{
    int64_t number;
    if (!get_number(reader, 0, TROUPE_RANK_MAX + more, &number))
        return false;
    *shape = (struct troupe_shape){.rank = (int)(number - more)};
    for (int i = 0; i < shape->rank; i++) {
        if (!get_number(reader, 0, INT64_MAX, &number))
            return false;
        shape->dims[i] = number - more;
    }
    return true;
}

static enum troupe_status unpack_tensor(struct troupe_wire_reader *reader, int depth,
                                        struct troupe_tensor **out);

static enum troupe_status unpack_item(struct troupe_wire_reader *reader, int depth,
                                      struct troupe_tensor_list *list, int64_t index)
{
    int64_t is_set;
    struct troupe_tensor *tensor;
    if (!get_number(reader, 0, 1, &is_set))
        return malformed(reader, "item of a list");
    if (!is_set)
        return TROUPE_OK;
    enum troupe_status status = unpack_tensor(reader, depth, &tensor);
    if (status != TROUPE_OK)
        return status;
    status = troupe_tensor_list_set(list, index, tensor);
    troupe_tensor_unref(tensor);
    return status == TROUPE_INVALID_ARGUMENT ? TROUPE_DATA_LOSS : status;
}

static enum troupe_status unpack_list(struct troupe_wire_reader *reader, int depth,
                                      struct troupe_tensor_list **out)
{
    enum troupe_dtype dtype;
    struct troupe_shape shape;
    struct troupe_tensor_list *list;
    int64_t max_length, length;
    if (depth > TROUPE_TENSOR_LIST_DEPTH_MAX || !get_dtype(reader, &dtype) ||
        !get_shape(reader, 1, &shape) || !get_number(reader, 0, INT64_MAX, &max_length) ||
        !get_number(reader, 0, TROUPE_TENSOR_LIST_LENGTH_MAX, &length) ||
        (size_t)length > bytes_left(reader) / 8 || (max_length > 0 && length > max_length - 1))
        return malformed(reader, "list");
    enum troupe_status status = troupe_tensor_list_create(dtype, &shape, length, &list);
    if (status != TROUPE_OK)
        return status;
    list->max_length = max_length - 1;
    for (int64_t i = 0; i < length && status == TROUPE_OK; i++)
        status = unpack_item(reader, depth, list, i);
    if (status != TROUPE_OK) {
        troupe_tensor_list_unref(list);
        return status;
    }
    *out = list;
    return TROUPE_OK;
}

static enum troupe_status unpack_string(struct troupe_wire_reader *reader,
                                        struct troupe_string **out)
{
    int64_t length;
    if (!get_number(reader, 0, INT64_MAX, &length) || (size_t)length > bytes_left(reader))
        return malformed(reader, "string");
    enum troupe_status status =
        troupe_string_create((const char *)reader->data + reader->position, (size_t)length, out);
    reader->position += (size_t)length;
    return status;
}

static enum troupe_status unpack_variant(struct troupe_wire_reader *reader, int depth,
                                         struct troupe_payload **out)
{
    int64_t is_list;
    struct troupe_tensor_list *list = NULL;
    if (!get_number(reader, 0, 1, &is_list))
        return malformed(reader, "variant");
    if (!is_list)
        return TROUPE_OK;
    enum troupe_status status = unpack_list(reader, depth + 1, &list);
    if (status == TROUPE_OK)
        *out = &list->payload;
    return status;
}

static enum troupe_status unpack_elements(struct troupe_wire_reader *reader, int depth,
                                          struct troupe_tensor *tensor)
{
    void *data = troupe_tensor_data_mutable(tensor);
    size_t bytes = troupe_tensor_bytes(tensor);
    if (!troupe_dtype_is_counted(tensor->dtype)) {
        if (bytes > 0)
            memcpy(data, reader->data + reader->position, bytes);
        reader->position += bytes;
        return TROUPE_OK;
    }
    enum troupe_status status = TROUPE_OK;
    for (int64_t i = 0; i < tensor->elements && status == TROUPE_OK; i++)
        status = tensor->dtype == TROUPE_STRING
                     ? unpack_string(reader, (struct troupe_string **)data + i)
                     : unpack_variant(reader, depth, (struct troupe_payload **)data + i);
    return status;
}

static enum troupe_status unpack_tensor(struct troupe_wire_reader *reader, int depth,
                                        struct troupe_tensor **out)
{
    enum troupe_dtype dtype;
    struct troupe_shape shape;
    struct troupe_tensor *tensor;
    if (!get_dtype(reader, &dtype) || !get_shape(reader, 0, &shape))
        return malformed(reader, "dtype and shape");
    /* A counted element is a number at least. */
    size_t each = troupe_dtype_is_counted(dtype) ? 8 : troupe_dtype_size(dtype);
    if ((uint64_t)troupe_shape_elements(&shape) > bytes_left(reader) / each)
        return malformed(reader, "room for as many elements");
    enum troupe_status status = troupe_tensor_create(dtype, shape.rank, shape.dims, &tensor);
    if (status != TROUPE_OK)
        return status == TROUPE_INVALID_ARGUMENT ? TROUPE_DATA_LOSS : status;
    status = unpack_elements(reader, depth, tensor);
    if (status != TROUPE_OK) {
        troupe_tensor_unref(tensor);
        return status;
    }
    *out = tensor;
    return TROUPE_OK;
}

enum troupe_status troupe_wire_unpack(const struct troupe_tensor *bytes, struct troupe_tensor **out)
{
    struct troupe_wire_reader reader;
    struct troupe_tensor *tensor;
    troupe_wire_reader_init(&reader, troupe_tensor_data(bytes), troupe_tensor_bytes(bytes));
    enum troupe_status status = unpack_tensor(&reader, 0, &tensor);
    if (status != TROUPE_OK)
        return status;
    status = troupe_wire_close(&reader, "packed tensor");
    if (status != TROUPE_OK) {
        troupe_tensor_unref(tensor);
        return status;
    }
    *out = tensor;
    return TROUPE_OK;
}
