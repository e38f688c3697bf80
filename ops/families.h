/* The tables of ops, one for each family file of this folder; ops/registry.c lists them. */
#ifndef TROUPE_OPS_FAMILIES_H
#define TROUPE_OPS_FAMILIES_H

#include <stddef.h>

#include "ops/op.h"

extern const struct troupe_op troupe_ops_math[];
extern const size_t troupe_ops_math_count;
extern const struct troupe_op troupe_ops_nn[];
extern const size_t troupe_ops_nn_count;
extern const struct troupe_op troupe_ops_reduce[];
extern const size_t troupe_ops_reduce_count;
extern const struct troupe_op troupe_ops_matmul[];
extern const size_t troupe_ops_matmul_count;
extern const struct troupe_op troupe_ops_array[];
extern const size_t troupe_ops_array_count;
extern const struct troupe_op troupe_ops_random[];
extern const size_t troupe_ops_random_count;
extern const struct troupe_op troupe_ops_state[];
extern const size_t troupe_ops_state_count;
extern const struct troupe_op troupe_ops_control[];
extern const size_t troupe_ops_control_count;
extern const struct troupe_op troupe_ops_flow[];
extern const size_t troupe_ops_flow_count;
extern const struct troupe_op troupe_ops_functions[];
extern const size_t troupe_ops_functions_count;
extern const struct troupe_op troupe_ops_list[];
extern const size_t troupe_ops_list_count;
extern const struct troupe_op troupe_ops_tensor_array[];
extern const size_t troupe_ops_tensor_array_count;
extern const struct troupe_op troupe_ops_queue[];
extern const size_t troupe_ops_queue_count;
extern const struct troupe_op troupe_ops_accumulator[];
extern const size_t troupe_ops_accumulator_count;
extern const struct troupe_op troupe_ops_data[];
extern const size_t troupe_ops_data_count;
extern const struct troupe_op troupe_ops_collective[];
extern const size_t troupe_ops_collective_count;

#endif
