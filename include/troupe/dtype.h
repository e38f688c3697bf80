/* Element types, with TensorFlow's names and numbers. */
#ifndef TROUPE_DTYPE_H
#define TROUPE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

/* The numbers are those of TensorFlow's DataType. */
enum troupe_dtype {
    TROUPE_DTYPE_INVALID = 0,
    TROUPE_FLOAT32 = 1,
    TROUPE_FLOAT64 = 2,
    TROUPE_INT32 = 3,
    TROUPE_UINT8 = 4,
    TROUPE_STRING = 7, /* an element is a byte string */
    TROUPE_INT64 = 9,
    TROUPE_BOOL = 10,
    TROUPE_BFLOAT16 = 14, /* storage and Cast only */
    TROUPE_FLOAT16 = 19,  /* storage and Cast only */
    TROUPE_RESOURCE = 20, /* an element is a handle of state that lives as long as tokens hold it */
    TROUPE_VARIANT = 21,  /* an element is a list of tensors */
    TROUPE_DTYPE_COUNT = 22
};

/* "float32"; "?" for a number that is no dtype. Static. Any thread. */
TROUPE_API const char *troupe_dtype_name(enum troupe_dtype dtype);

/* Bytes of one element; 0 for INVALID; the size of a pointer for counted elements. Any
 * thread. */
TROUPE_API size_t troupe_dtype_size(enum troupe_dtype dtype);

/* Reads "float32", "float", "DT_FLOAT", "half", ...: TensorFlow's spellings, numpy's and the
 * protobuf names. INVALID_ARGUMENT with the list of right ones. Any thread. */
TROUPE_API TROUPE_MUST_USE enum troupe_status troupe_dtype_parse(const char *name,
                                                                 enum troupe_dtype *dtype_out);

/* True for string, resource and variant, whose elements are pointers to counted payloads
 * (troupe/payload.h); NULL is an element that was not set. Any thread. */
TROUPE_API bool troupe_dtype_is_counted(enum troupe_dtype dtype);

/* True for float16, bfloat16, float32 and float64. Any thread. */
TROUPE_API bool troupe_dtype_is_floating(enum troupe_dtype dtype);

#endif
