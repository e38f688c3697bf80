/* Tensors whose elements are strings or lists of tensors as bytes, for messages between ranks. */
#ifndef TROUPE_COORDINATOR_WIRE_PACK_H
#define TROUPE_COORDINATOR_WIRE_PACK_H

#include "troupe/status.h"
#include "troupe/tensor.h"

/* Makes a vector of uint8 with all that the tensor is: dtype, shape and elements, through lists in
 * lists. UNIMPLEMENTED: there is a resource in it, which lives on its rank. RESOURCE_EXHAUSTED. Any
 * thread. */
TROUPE_MUST_USE enum troupe_status troupe_wire_pack(const struct troupe_tensor *tensor,
                                                    struct troupe_tensor **out);
/* The inverse. DATA_LOSS: these are not the bytes of a tensor. Nothing is allocated that is larger
 * than what the bytes can hold. */
TROUPE_MUST_USE enum troupe_status troupe_wire_unpack(const struct troupe_tensor *bytes,
                                                      struct troupe_tensor **out);

#endif
