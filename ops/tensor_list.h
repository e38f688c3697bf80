/* Lists of tensors: the values of dtype variant. An element of a variant tensor is a counted list,
 * or NULL.
 *
 * A list is a value: it never changes while more than its one owner can see it. An op that changes
 * a list takes the input's own when nobody else holds it, and a copy, which shares the elements,
 * otherwise; so a loop that hands on its list adds to it in constant time. */
#ifndef TROUPE_OPS_TENSOR_LIST_H
#define TROUPE_OPS_TENSOR_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/shape.h"
#include "troupe/payload.h"
#include "troupe/tensor.h"

/* What a list holds at most, and how deep lists lie in lists, whatever a graph asks for. */
#define TROUPE_TENSOR_LIST_LENGTH_MAX (INT64_C(1) << 27)
#define TROUPE_TENSOR_LIST_DEPTH_MAX  32

struct troupe_tensor_list {
    struct troupe_payload payload;     /* first */
    enum troupe_dtype dtype;           /* of every element */
    struct troupe_shape element_shape; /* which every element has, as far as it is known */
    int64_t max_length;                /* -1: no limit but TROUPE_TENSOR_LIST_LENGTH_MAX */
    int64_t length, capacity;
    int depth;                       /* 1, or 1 more than the deepest list in it */
    struct troupe_tensor **elements; /* `length` counted ones; NULL: not set */
};

/* A list of `length` elements that are not set, with one reference. INVALID_ARGUMENT: the length is
 * out of range; RESOURCE_EXHAUSTED. Any thread, as all of these. */
TROUPE_MUST_USE enum troupe_status
troupe_tensor_list_create(enum troupe_dtype dtype, const struct troupe_shape *element_shape,
                          int64_t length, struct troupe_tensor_list **out);
/* A list with the same elements. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_list_copy(const struct troupe_tensor_list *list,
                                                           struct troupe_tensor_list **out);
void troupe_tensor_list_unref(struct troupe_tensor_list *list);

/* The list that an element of a variant tensor is; NULL for NULL and for what is no list. */
struct troupe_tensor_list *troupe_tensor_list_of(struct troupe_payload *element);

/* The functions below change a list: the caller has its only reference. */

/* Cuts a list, or adds elements that are not set. INVALID_ARGUMENT: the length is out of range or
 * above max_length. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_list_resize(struct troupe_tensor_list *list,
                                                             int64_t length);
/* Sets element `index`, which is there; shares `tensor` (NULL: no longer set). INVALID_ARGUMENT:
 * its dtype or shape is not the list's, or its lists lie too deep. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_list_set(struct troupe_tensor_list *list,
                                                          int64_t index,
                                                          struct troupe_tensor *tensor);

/* True when counts, depth and elements agree with each other. */
bool troupe_tensor_list_is_valid(const struct troupe_tensor_list *list);

#endif
