/* Ops that make, reshape, move, join and take apart tensors. Their kernels move elements without
 * looking at them, and so take every dtype. Shape functions are in array_infer.c and
 * array_parts.c, gradients in array_gradient.c. */
#include "ops/array.h"

#include "ops/families.h"
#include "ops/kernels/array.h"

#define TROUPE_COUNTS "its output only counts: it does not depend on values"

#define TROUPE_ARRAY_KERNELS(X)                                                                    \
    X(const)                                                                                       \
    X(identity)                                                                                    \
    X(view)                                                                                        \
    X(shape)                                                                                       \
    X(size)                                                                                        \
    X(rank)                                                                                        \
    X(fill)                                                                                        \
    X(range)                                                                                       \
    X(one_hot)                                                                                     \
    X(invert_permutation)                                                                          \
    X(concat_offset)                                                                               \
    X(broadcast_gradient_args)                                                                     \
    X(transpose)                                                                                   \
    X(broadcast_to)                                                                                \
    X(concat)                                                                                      \
    X(concat_v2)                                                                                   \
    X(split)                                                                                       \
    X(split_v)                                                                                     \
    X(slice)                                                                                       \
    X(tile)                                                                                        \
    X(pad)                                                                                         \
    X(pack)                                                                                        \
    X(unpack)                                                                                      \
    X(gather)                                                                                      \
    X(gather_v2)                                                                                   \
    X(unsorted_segment_sum)

enum {
#define TROUPE_ROW(stem) KERNEL_##stem,
    TROUPE_ARRAY_KERNELS(TROUPE_ROW)
#undef TROUPE_ROW
};

static const struct troupe_kernel_row kernels[] = {
#define TROUPE_ROW(stem) [KERNEL_##stem] = {.device = "CPU", .compute = troupe_kernel_##stem},
    TROUPE_ARRAY_KERNELS(TROUPE_ROW)
#undef TROUPE_ROW
};

/* The fields of an op whose shape function and kernel are known by these names. */
#define TROUPE_DOES(shapes, stem)                                                                  \
    .infer = troupe_infer_##shapes, .kernels = &kernels[KERNEL_##stem], .kernel_count = 1
#define TROUPE_INDEX(name) name ": {int32, int64} = int32"

const struct troupe_op troupe_ops_array[] = {
    {.name = "Const",
     .doc = "A value that is in the graph.",
     .inputs = "",
     .outputs = "output: dtype",
     .attrs = "value: tensor; dtype: type",
     .no_gradient = "it has no inputs",
     TROUPE_DOES(const, const)},
    {.name = "Identity",
     .doc = "The input itself.",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .gradient = troupe_gradient_of_identity,
     TROUPE_DOES(unchanged, identity)},
    {.name = "StopGradient",
     .doc = "The input itself, which counts as a constant for gradients.",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .gradient = troupe_gradient_of_stop,
     TROUPE_DOES(unchanged, identity)},
    {.name = "PreventGradient",
     .doc = "The input itself; asking for its gradient is an error.",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type; message: string = ''",
     .no_gradient = "that is what PreventGradient is for (its attr \"message\" says why)",
     TROUPE_DOES(unchanged, identity)},
    {.name = "Reshape",
     .doc = "The same elements in another shape, one size of which may be -1: what is left.",
     .inputs = "tensor: T, shape: Tshape",
     .outputs = "output: T",
     .attrs = "T: type; " TROUPE_INDEX("Tshape"),
     .gradient = troupe_gradient_of_reshape,
     TROUPE_DOES(reshape, view)},
    {.name = "ExpandDims",
     .doc = "The same elements with a dimension of 1 put in at an axis.",
     .inputs = "input: T, dim: Tdim",
     .outputs = "output: T",
     .attrs = "T: type; " TROUPE_INDEX("Tdim"),
     .gradient = troupe_gradient_of_reshape,
     TROUPE_DOES(expand_dims, view)},
    {.name = "Squeeze",
     .doc = "The same elements without dimensions of 1: all of them, or those in squeeze_dims.",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type; squeeze_dims: list(int) >= 0 = []",
     .gradient = troupe_gradient_of_reshape,
     TROUPE_DOES(squeeze, view)},
    {.name = "Transpose",
     .doc = "Permutes dimensions: dimension i of the output is dimension perm[i] of x.",
     .inputs = "x: T, perm: Tperm",
     .outputs = "y: T",
     .attrs = "T: type; " TROUPE_INDEX("Tperm"),
     .gradient = troupe_gradient_of_transpose,
     TROUPE_DOES(transpose, transpose)},
    {.name = "InvertPermutation",
     .doc = "The inverse of a permutation: y[x[i]] = i.",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = TROUPE_INDEX("T"),
     .no_gradient = TROUPE_COUNTS,
     TROUPE_DOES(invert_permutation, invert_permutation)},
    {.name = "Shape",
     .doc = "The sizes of the input's dimensions.",
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type; " TROUPE_INDEX("out_type"),
     .no_gradient = TROUPE_COUNTS,
     TROUPE_DOES(shape, shape)},
    {.name = "Size",
     .doc = "The number of the input's elements.",
     .inputs = "input: T",
     .outputs = "output: out_type",
     .attrs = "T: type; " TROUPE_INDEX("out_type"),
     .no_gradient = TROUPE_COUNTS,
     TROUPE_DOES(scalar, size)},
    {.name = "Rank",
     .doc = "The number of the input's dimensions.",
     .inputs = "input: T",
     .outputs = "output: int32",
     .attrs = "T: type",
     .no_gradient = TROUPE_COUNTS,
     TROUPE_DOES(scalar, rank)},
    {.name = "Fill",
     .doc = "A tensor of the given shape, every element of which is value.",
     .inputs = "dims: index_type, value: T",
     .outputs = "output: T",
     .attrs = "T: type; " TROUPE_INDEX("index_type"),
     .gradient = troupe_gradient_of_fill,
     TROUPE_DOES(fill, fill)},
    {.name = "Range",
     .doc = "start, start + delta, ... up to but not including limit.",
     .inputs = "start: Tidx, limit: Tidx, delta: Tidx",
     .outputs = "output: Tidx",
     .attrs = "Tidx: {float32, float64, int32, int64} = int32",
     .no_gradient = "its bounds say how many numbers there are",
     TROUPE_DOES(range, range)},
    {.name = "OneHot",
     .doc = "on_value at each index along a new axis of size depth, off_value elsewhere.",
     .inputs = "indices: TI, depth: int32, on_value: T, off_value: T",
     .outputs = "output: T",
     .attrs = "axis: int = -1; T: type; TI: {uint8, int32, int64} = int64",
     .gradient = troupe_gradient_of_one_hot,
     TROUPE_DOES(one_hot, one_hot)},
    {.name = "BroadcastTo",
     .doc = "Repeats the input along dimensions of 1, and new ones, up to a shape.",
     .inputs = "input: T, shape: Tidx",
     .outputs = "output: T",
     .attrs = "T: type; " TROUPE_INDEX("Tidx"),
     .gradient = troupe_gradient_of_broadcast_to,
     TROUPE_DOES(broadcast_to, broadcast_to)},
    {.name = "BroadcastGradientArgs",
     .doc = "The axes along which shapes s0 and s1 are broadcast against each other.",
     .inputs = "s0: T, s1: T",
     .outputs = "r0: T, r1: T",
     .attrs = TROUPE_INDEX("T"),
     .no_gradient = TROUPE_COUNTS,
     TROUPE_DOES(broadcast_gradient_args, broadcast_gradient_args)},
    {.name = "ConcatV2",
     .doc = "Joins tensors along an axis.",
     .inputs = "values: N * T, axis: Tidx",
     .outputs = "output: T",
     .attrs = "N: int >= 2; T: type; " TROUPE_INDEX("Tidx"),
     .gradient = troupe_gradient_of_concat_v2,
     TROUPE_DOES(concat_v2, concat_v2)},
    {.name = "Concat",
     .doc = "Joins tensors along an axis, which is the first input.",
     .inputs = "concat_dim: int32, values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 2; T: type",
     .gradient = troupe_gradient_of_concat,
     TROUPE_DOES(concat, concat)},
    {.name = "ConcatOffset",
     .doc = "Where each of several shapes begins when they are joined along an axis.",
     .inputs = "concat_dim: int32, shape: N * shape_type",
     .outputs = "offset: N * shape_type",
     .attrs = "N: int >= 2; " TROUPE_INDEX("shape_type"),
     .no_gradient = TROUPE_COUNTS,
     TROUPE_DOES(concat_offset, concat_offset)},
    {.name = "Split",
     .doc = "Takes a tensor apart into num_split equal parts along an axis.",
     .inputs = "split_dim: int32, value: T",
     .outputs = "output: num_split * T",
     .attrs = "num_split: int >= 1; T: type",
     .gradient = troupe_gradient_of_split,
     TROUPE_DOES(split, split)},
    {.name = "SplitV",
     .doc = "Takes a tensor apart into parts of the given sizes along an axis.",
     .inputs = "value: T, size_splits: Tlen, split_dim: int32",
     .outputs = "output: num_split * T",
     .attrs = "num_split: int >= 1; T: type; Tlen: {int32, int64} = int64",
     .gradient = troupe_gradient_of_split_v,
     TROUPE_DOES(split_v, split_v)},
    {.name = "Slice",
     .doc = "The part of a tensor from begin on of the given size; -1: all that is left.",
     .inputs = "input: T, begin: Index, size: Index",
     .outputs = "output: T",
     .attrs = "T: type; Index: {int32, int64}",
     .gradient = troupe_gradient_of_slice,
     TROUPE_DOES(slice, slice)},
    {.name = "Tile",
     .doc = "Repeats a tensor multiples[i] times along dimension i.",
     .inputs = "input: T, multiples: Tmultiples",
     .outputs = "output: T",
     .attrs = "T: type; " TROUPE_INDEX("Tmultiples"),
     .gradient = troupe_gradient_of_tile,
     TROUPE_DOES(tile, tile)},
    {.name = "Pad",
     .doc = "Puts zeros before and after along each dimension: paddings is [rank, 2].",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type; " TROUPE_INDEX("Tpaddings"),
     .gradient = troupe_gradient_of_pad,
     TROUPE_DOES(pad, pad)},
    {.name = "PadV2",
     .doc = "As Pad, with constant_values instead of zeros.",
     .inputs = "input: T, paddings: Tpaddings, constant_values: T",
     .outputs = "output: T",
     .attrs = "T: type; " TROUPE_INDEX("Tpaddings"),
     .gradient = troupe_gradient_of_pad,
     TROUPE_DOES(pad, pad)},
    {.name = "Pack",
     .doc = "Stacks tensors of one shape along a new axis.",
     .inputs = "values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 1; T: type; axis: int = 0",
     .gradient = troupe_gradient_of_pack,
     TROUPE_DOES(pack, pack)},
    {.name = "Unpack",
     .doc = "Takes a tensor apart into its num entries along an axis, which goes.",
     .inputs = "value: T",
     .outputs = "output: num * T",
     .attrs = "num: int >= 0; T: type; axis: int = 0",
     .gradient = troupe_gradient_of_unpack,
     TROUPE_DOES(unpack, unpack)},
    {.name = "Gather",
     .doc = "The rows of params that indices name.",
     .inputs = "params: Tparams, indices: Tindices",
     .outputs = "output: Tparams",
     .attrs = "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}",
     .gradient = troupe_gradient_of_gather,
     TROUPE_DOES(gather, gather)},
    {.name = "GatherV2",
     .doc = "The entries of params along an axis that indices name.",
     .inputs = "params: Tparams, indices: Tindices, axis: Taxis",
     .outputs = "output: Tparams",
     .attrs = "batch_dims: int = 0; Tparams: type; Tindices: {int32, int64}; "
              "Taxis: {int32, int64}",
     .gradient = troupe_gradient_of_gather_v2,
     TROUPE_DOES(gather_v2, gather_v2)},
    {.name = "UnsortedSegmentSum",
     .doc = "Sums the rows of data that have the same segment id; a negative id drops a row.",
     .inputs = "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: {float32, float64, int32, int64}; Tindices: {int32, int64}; "
              "Tnumsegments: {int32, int64} = int32",
     .gradient = troupe_gradient_of_unsorted_segment_sum,
     TROUPE_DOES(unsorted_segment_sum, unsorted_segment_sum)},
};
const size_t troupe_ops_array_count = sizeof(troupe_ops_array) / sizeof(troupe_ops_array[0]);
