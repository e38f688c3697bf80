/* What a tensor is inside: a view of a counted buffer. */
#ifndef TROUPE_OPS_TENSOR_H
#define TROUPE_OPS_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "troupe/tensor.h"

/* `payload` is first, so that a pointer to either converts to the other. */
struct troupe_tensor {
    struct troupe_payload payload;
    enum troupe_dtype dtype;
    int rank;
    int64_t dims[TROUPE_RANK_MAX];
    int64_t elements;
    struct troupe_buffer *buffer; /* counted; may be shared */
    size_t offset;                /* of the first element in the buffer, in bytes */
};

/* A tensor over `buffer` from byte `offset` on, sharing the buffer. INVALID_ARGUMENT: a rank or
 * size out of range, a misaligned offset, or a buffer that is too short. Any thread. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_view(enum troupe_dtype dtype, int rank,
                                                      const int64_t *dims,
                                                      struct troupe_buffer *buffer, size_t offset,
                                                      struct troupe_tensor **out);

/* A new tensor with other dims over the same buffer. INVALID_ARGUMENT: "a tensor of 6 elements
 * does not reshape to [4]". Any thread. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_reshape(struct troupe_tensor *tensor, int rank,
                                                         const int64_t *dims,
                                                         struct troupe_tensor **out);

/* Rows [begin, end) of the outermost dimension, sharing the buffer. INVALID_ARGUMENT: a scalar,
 * or rows that are not there. Any thread. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_rows(struct troupe_tensor *tensor, int64_t begin,
                                                      int64_t end, struct troupe_tensor **out);

/* A new tensor with a buffer of its own (counted elements are shared: they never change). */
TROUPE_MUST_USE enum troupe_status troupe_tensor_copy(const struct troupe_tensor *tensor,
                                                      struct troupe_tensor **out);

/* Counts the elements of a tensor into which pointers were copied; does nothing to dtypes whose
 * elements are not counted. */
void troupe_tensor_share_elements(struct troupe_tensor *tensor);

/* True when the caller's reference is the only one to the tensor and to its buffer, so that it
 * may write in place. */
bool troupe_tensor_is_unique(const struct troupe_tensor *tensor);

/* The token of a branch not taken, as an output of a kernel and as an input of one that takes dead
 * tokens: nothing but its payload, troupe_payload_dead, is there. References are not counted. */
struct troupe_tensor *troupe_tensor_dead(void);
bool troupe_tensor_is_dead(const struct troupe_tensor *tensor);

/* True when dims, rank, dtype and buffer agree with each other. */
bool troupe_tensor_is_valid(const struct troupe_tensor *tensor);

#endif
