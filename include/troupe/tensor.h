/* Tensors: immutable, reference-counted, dense, row-major. */
#ifndef TROUPE_TENSOR_H
#define TROUPE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/dtype.h"
#include "troupe/payload.h"
#include "troupe/status.h"

#define TROUPE_RANK_MAX 8

struct troupe_tensor;

/* Allocates a tensor whose elements are not set (counted ones are NULL), with one reference.
 * `dims` holds `rank` sizes, each 0 or more. The data is aligned to 64 bytes. Until it is
 * handed to anybody else the caller may write it through troupe_tensor_data.
 * INVALID_ARGUMENT: rank or a size out of range; RESOURCE_EXHAUSTED: no memory. Any thread. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_tensor_create(enum troupe_dtype dtype,
                                                                   int rank, const int64_t *dims,
                                                                   struct troupe_tensor **out);

/* As troupe_tensor_create, and copies troupe_tensor_bytes(*out) bytes from `data`. Not for
 * dtypes whose elements are counted. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_tensor_from_data(enum troupe_dtype dtype,
                                                                      int rank, const int64_t *dims,
                                                                      const void *data,
                                                                      struct troupe_tensor **out);

/* Another reference to the same tensor, returned for convenience; troupe_tensor_unref drops
 * one (NULL does nothing). Any thread. */
TROUPE_API struct troupe_tensor *troupe_tensor_ref(struct troupe_tensor *tensor);
TROUPE_API void troupe_tensor_unref(struct troupe_tensor *tensor);

/* What a tensor is. `dims` has `rank` entries and belongs to the tensor; `elements` is their
 * product; `bytes` is elements times the dtype's size. Any thread. */
TROUPE_API enum troupe_dtype troupe_tensor_dtype(const struct troupe_tensor *tensor);
TROUPE_API int troupe_tensor_rank(const struct troupe_tensor *tensor);
TROUPE_API const int64_t *troupe_tensor_dims(const struct troupe_tensor *tensor);
TROUPE_API int64_t troupe_tensor_elements(const struct troupe_tensor *tensor);
TROUPE_API size_t troupe_tensor_bytes(const struct troupe_tensor *tensor);

/* The elements, row-major. The writable form is for the tensor's maker, before it is shared. */
TROUPE_API const void *troupe_tensor_data(const struct troupe_tensor *tensor);
TROUPE_API void *troupe_tensor_data_mutable(struct troupe_tensor *tensor);

/* A tensor as a token of the engine (troupe/actor.h), and back. NULL gives NULL; references stay as
 * they are. */
TROUPE_API struct troupe_payload *troupe_tensor_payload(struct troupe_tensor *tensor);
TROUPE_API struct troupe_tensor *troupe_tensor_of_payload(struct troupe_payload *payload);

#endif
