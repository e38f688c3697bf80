/* Kernels of the family "list". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_LIST_H
#define TROUPE_OPS_KERNELS_LIST_H

#include "ops/kernel.h"
#include "ops/kernels/elements.h"
#include "ops/tensor_list.h"

troupe_compute_fn troupe_kernel_list_empty;
troupe_compute_fn troupe_kernel_list_reserve;
troupe_compute_fn troupe_kernel_list_set_item;
troupe_compute_fn troupe_kernel_list_get_item;
troupe_compute_fn troupe_kernel_list_push_back;
troupe_compute_fn troupe_kernel_list_pop_back;
troupe_compute_fn troupe_kernel_list_length;
troupe_compute_fn troupe_kernel_list_resize;
troupe_compute_fn troupe_kernel_list_element_shape;

troupe_compute_fn troupe_kernel_list_stack;
troupe_compute_fn troupe_kernel_list_gather;
troupe_compute_fn troupe_kernel_list_concat;
troupe_compute_fn troupe_kernel_list_from_tensor;
troupe_compute_fn troupe_kernel_list_scatter;
troupe_compute_fn troupe_kernel_list_scatter_into;
troupe_compute_fn troupe_kernel_list_split;

/* Runs the op's shape function, and finds the list of input 0 (borrowed) of an op that only reads
 * it. INVALID_ARGUMENT: what the shape function says, no list, or elements of another dtype than
 * attr "element_dtype". */
TROUPE_MUST_USE enum troupe_status troupe_call_list(struct troupe_kernel_call *call,
                                                    const struct troupe_tensor_list **out);
/* The same for an op that changes it: `*out` is the list of output 0, the input's own when nobody
 * else holds it, else a copy. */
TROUPE_MUST_USE enum troupe_status troupe_call_take_list(struct troupe_kernel_call *call,
                                                         struct troupe_tensor_list **out);
/* Makes output 0 of a list, whose one reference it takes, also on failure. */
TROUPE_MUST_USE enum troupe_status troupe_call_output_list(struct troupe_kernel_call *call,
                                                           struct troupe_tensor_list *list);
/* What input "element_shape" and the list say of an element's shape together. INVALID_ARGUMENT:
 * they contradict each other. */
TROUPE_MUST_USE enum troupe_status troupe_call_element_shape(const struct troupe_kernel_call *call,
                                                             const struct troupe_tensor_list *list,
                                                             struct troupe_shape *out);
/* All elements of a list. */
struct troupe_elements troupe_list_elements(const struct troupe_tensor_list *list);

#endif
