/* Encoding of what ranks tell each other. Invariant: every number is 8 bytes, low byte first, so
 * that ranks of either byte order agree. */
#include "coordinator/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

void troupe_wire_put_u64(struct troupe_text *out, uint64_t value)
{
    unsigned char bytes[8];
    troupe_bytes_put_u64(bytes, value);
    char text[8];
    memcpy(text, bytes, sizeof(bytes));
    troupe_text_add_bytes(out, text, sizeof(text));
}

void troupe_wire_put_string(struct troupe_text *out, const char *text)
{
    size_t length = strlen(text);
    troupe_wire_put_u64(out, length);
    troupe_text_add_bytes(out, text, length);
}

void troupe_wire_reader_init(struct troupe_wire_reader *reader, const void *data, size_t bytes)
{
    reader->data = data;
    reader->bytes = bytes;
    reader->position = 0;
    reader->failed = false;
}

uint64_t troupe_wire_get_u64(struct troupe_wire_reader *reader)
{
    if (reader->failed || reader->bytes - reader->position < 8) {
        reader->failed = true;
        return 0;
    }
    uint64_t value = troupe_bytes_get_u64(reader->data + reader->position);
    reader->position += 8;
    return value;
}

char *troupe_wire_get_string(struct troupe_wire_reader *reader)
{
    uint64_t length = troupe_wire_get_u64(reader);
    if (reader->failed || length > reader->bytes - reader->position) {
        reader->failed = true;
        return calloc(1, 1);
    }
    char *text = malloc((size_t)length + 1);
    if (!text)
        return NULL;
    memcpy(text, reader->data + reader->position, (size_t)length);
    text[length] = 0;
    reader->position += (size_t)length;
    return text;
}

enum troupe_status troupe_wire_close(const struct troupe_wire_reader *reader, const char *what)
{
    if (reader->failed)
        return troupe_status_fail(TROUPE_DATA_LOSS, "message \"%s\" is cut short at byte %zu", what,
                                  reader->position);
    if (reader->position != reader->bytes)
        return troupe_status_fail(TROUPE_DATA_LOSS, "message \"%s\" has %zu bytes too many", what,
                                  reader->bytes - reader->position);
    return TROUPE_OK;
}

void troupe_wire_encode_header(const struct troupe_tensor *tensor, bool dead,
                               unsigned char out[TROUPE_WIRE_TENSOR_HEADER])
{
    memset(out, 0, TROUPE_WIRE_TENSOR_HEADER);
    troupe_bytes_put_u64(out, dead ? 1 : 0);
    if (dead)
        return;
    int rank = troupe_tensor_rank(tensor);
    troupe_bytes_put_u64(out + 8, (uint64_t)troupe_tensor_dtype(tensor));
    troupe_bytes_put_u64(out + 16, (uint64_t)rank);
    for (int i = 0; i < rank; i++)
        troupe_bytes_put_u64(out + 24 + 8 * (size_t)i, (uint64_t)troupe_tensor_dims(tensor)[i]);
}

enum troupe_status troupe_wire_decode_header(const unsigned char in[TROUPE_WIRE_TENSOR_HEADER],
                                             size_t bytes, struct troupe_wire_tensor *out)
{
    struct troupe_wire_tensor result = {0};
    if (bytes != TROUPE_WIRE_TENSOR_HEADER)
        return troupe_status_fail(TROUPE_DATA_LOSS, "a tensor's header wants %d bytes, got %zu",
                                  TROUPE_WIRE_TENSOR_HEADER, bytes);
    result.dead = troupe_bytes_get_u64(in) != 0;
    uint64_t dtype = troupe_bytes_get_u64(in + 8), rank = troupe_bytes_get_u64(in + 16);
    if (result.dead) {
        *out = result;
        return TROUPE_OK;
    }
    if (dtype >= TROUPE_DTYPE_COUNT || troupe_dtype_is_counted((enum troupe_dtype)dtype) ||
        troupe_dtype_size((enum troupe_dtype)dtype) == 0 || rank > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_DATA_LOSS,
                                  "a tensor's header has dtype %llu and %llu dimensions",
                                  (unsigned long long)dtype, (unsigned long long)rank);
    result.dtype = (enum troupe_dtype)dtype;
    result.shape.rank = (int)rank;
    int64_t total = (int64_t)troupe_dtype_size(result.dtype);
    for (int i = 0; i < result.shape.rank; i++) {
        uint64_t size = troupe_bytes_get_u64(in + 24 + 8 * (size_t)i);
        if (size > INT64_MAX || __builtin_mul_overflow(total, size > 0 ? (int64_t)size : 1, &total))
            return troupe_status_fail(TROUPE_DATA_LOSS, "a tensor's header has size %llu",
                                      (unsigned long long)size);
        result.shape.dims[i] = (int64_t)size;
    }
    *out = result;
    return TROUPE_OK;
}
