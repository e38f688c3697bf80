/* Numbers, strings and tensors as bytes, little-endian, for messages between ranks. A reader never
 * goes past the end: the first short or malformed field sets `failed` and later reads give zero. */
#ifndef TROUPE_COORDINATOR_WIRE_H
#define TROUPE_COORDINATOR_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "ops/shape.h"
#include "troupe/status.h"
#include "troupe/tensor.h"

/* Writing appends to a struct troupe_text, whose `failed` says that memory ran out. */
void troupe_wire_put_u64(struct troupe_text *out, uint64_t value);
void troupe_wire_put_string(struct troupe_text *out, const char *text);

struct troupe_wire_reader {
    const unsigned char *data;
    size_t bytes;
    size_t position;
    bool failed;
};

void troupe_wire_reader_init(struct troupe_wire_reader *reader, const void *data, size_t bytes);
uint64_t troupe_wire_get_u64(struct troupe_wire_reader *reader);
/* A new string (free()), "" after a failure; NULL only without memory. */
char *troupe_wire_get_string(struct troupe_wire_reader *reader);
/* DATA_LOSS, with `what` in the message, when a read failed or bytes are left over. */
TROUPE_MUST_USE enum troupe_status troupe_wire_close(const struct troupe_wire_reader *reader,
                                                     const char *what);

/* A tensor's dtype and shape in a fixed-size header, which goes before its bytes on an edge whose
 * shape is not known when the plan is cast. `dead` stands for a dead token. */
#define TROUPE_WIRE_TENSOR_HEADER 96
void troupe_wire_encode_header(const struct troupe_tensor *tensor, bool dead,
                               unsigned char out[TROUPE_WIRE_TENSOR_HEADER]);
/* What such a header says. Nothing is allocated: whoever reads it first compares it with what the
 * graph expects. */
struct troupe_wire_tensor {
    bool dead;
    enum troupe_dtype dtype;
    struct troupe_shape shape; /* of known, non-negative sizes whose product is no overflow */
};
TROUPE_MUST_USE enum troupe_status
troupe_wire_decode_header(const unsigned char in[TROUPE_WIRE_TENSOR_HEADER], size_t bytes,
                          struct troupe_wire_tensor *out);

#endif
