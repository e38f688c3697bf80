/* Broadcast operands walked in runs. Invariant: axes along which every operand goes on as before
 * are merged first, so that equal shapes are one run, and a scalar or a row repeated against a
 * matrix is as few runs as can be. */
#include "ops/kernels/elementwise.h"

#include <string.h>

struct walk {
    troupe_run_fn *run;
    int count, rank; /* operands; axes, at least 1 */
    int64_t dims[TROUPE_RANK_MAX];
    int64_t steps[TROUPE_RANK_MAX][TROUPE_OPERAND_MAX]; /* in elements */
    char *out;
    const char *in[TROUPE_OPERAND_MAX];
    int64_t out_size, in_size[TROUPE_OPERAND_MAX]; /* of an element, in bytes */
};

/* Adds an axis inside those that are there, or lengthens the last one. */
static void walk_add(struct walk *walk, int64_t size, const int64_t *steps)
{
    int last = walk->rank - 1;
    bool joins = last >= 0;
    for (int i = 0; joins && i < walk->count; i++)
        joins = walk->steps[last][i] == steps[i] * size;
    if (joins)
        walk->dims[last] *= size;
    else
        walk->dims[++last] = size;
    for (int i = 0; i < walk->count; i++)
        walk->steps[last][i] = steps[i];
    walk->rank = last + 1;
}

static void walk_shapes(struct walk *walk, const struct troupe_shape *out,
                        const struct troupe_shape *shapes)
{
    int64_t steps[TROUPE_RANK_MAX][TROUPE_OPERAND_MAX];
    for (int i = 0; i < walk->count; i++) {
        int64_t distance = 1;
        for (int axis = out->rank - 1; axis >= 0; axis--) {
            int own = axis - (out->rank - shapes[i].rank);
            int64_t size = own < 0 ? 1 : shapes[i].dims[own];
            steps[axis][i] = size == 1 ? 0 : distance;
            distance *= size;
        }
    }
    for (int axis = 0; axis < out->rank; axis++)
        if (out->dims[axis] != 1)
            walk_add(walk, out->dims[axis], steps[axis]);
    if (walk->rank == 0)
        walk_add(walk, 1, (const int64_t[TROUPE_OPERAND_MAX]){1, 1, 1});
}

/* Part of a single run. */
static void walk_part(void *context, int64_t begin, int64_t end)
{
    const struct walk *walk = context;
    const void *in[TROUPE_OPERAND_MAX];
    for (int i = 0; i < walk->count; i++)
        in[i] = walk->in[i] + begin * walk->steps[0][i] * walk->in_size[i];
    walk->run(walk->out + begin * walk->out_size, in, walk->steps[0], end - begin);
}

/* Runs number `begin` to before `end`. */
static void walk_runs(void *context, int64_t begin, int64_t end)
{
    const struct walk *walk = context;
    int inner = walk->rank - 1;
    int64_t at[TROUPE_RANK_MAX] = {0}, offsets[TROUPE_OPERAND_MAX] = {0}, rest = begin;
    for (int axis = inner - 1; axis >= 0; axis--) {
        at[axis] = rest % walk->dims[axis];
        rest /= walk->dims[axis];
        for (int i = 0; i < walk->count; i++)
            offsets[i] += at[axis] * walk->steps[axis][i];
    }
    for (int64_t number = begin; number < end; number++) {
        const void *in[TROUPE_OPERAND_MAX];
        for (int i = 0; i < walk->count; i++)
            in[i] = walk->in[i] + offsets[i] * walk->in_size[i];
        walk->run(walk->out + number * walk->dims[inner] * walk->out_size, in, walk->steps[inner],
                  walk->dims[inner]);
        for (int axis = inner - 1; axis >= 0; axis--) {
            bool turns = ++at[axis] == walk->dims[axis];
            int64_t moves = turns ? 1 - walk->dims[axis] : 1;
            for (int i = 0; i < walk->count; i++)
                offsets[i] += moves * walk->steps[axis][i];
            if (!turns)
                break;
            at[axis] = 0;
        }
    }
}

void troupe_elementwise_apply(struct troupe_parallel *parallel, troupe_run_fn *run, int64_t grain,
                              struct troupe_tensor *out, const struct troupe_operands *operands)
{
    const struct troupe_tensor *const *inputs = operands->inputs;
    int count = operands->count;
    struct walk walk = {
        .run = run, .count = count, .out_size = (int64_t)troupe_dtype_size(out->dtype)};
    struct troupe_shape shape = troupe_shape_of(out), own[TROUPE_OPERAND_MAX];
    if (out->elements == 0)
        return;
    walk.out = troupe_tensor_data_mutable(out);
    for (int i = 0; i < count; i++) {
        walk.in[i] = troupe_tensor_data(inputs[i]);
        walk.in_size[i] = (int64_t)troupe_dtype_size(inputs[i]->dtype);
        own[i] = operands->shapes ? operands->shapes[i] : troupe_shape_of(inputs[i]);
    }
    walk_shapes(&walk, &shape, own);
    int64_t run_length = walk.dims[walk.rank - 1], runs = out->elements / run_length;
    if (walk.rank == 1)
        troupe_parallel_for(parallel, run_length, grain, walk_part, &walk);
    else
        troupe_parallel_for(parallel, runs, run_length < grain ? grain / run_length : 1, walk_runs,
                            &walk);
}

enum troupe_status troupe_call_output_reusing(struct troupe_kernel_call *call,
                                              const struct troupe_shape *shape,
                                              struct troupe_tensor **out)
{
    for (int i = 0; i < call->kernel->input_count; i++) {
        const struct troupe_tensor *input = call->inputs[i];
        struct troupe_shape own = troupe_shape_of(input);
        if (input->dtype == call->kernel->output_dtypes[0] && troupe_shape_equal(&own, shape) &&
            troupe_tensor_is_unique(input))
            return troupe_call_output_like(call, 0, i, out);
    }
    return troupe_call_output(call, 0, shape->rank, shape->dims, out);
}

const struct troupe_elementwise *troupe_elementwise_of(const struct troupe_kernel_call *call)
{
    const void *row = call->kernel->row;
    return row;
}

enum troupe_status troupe_call_unary(struct troupe_kernel_call *call)
{
    const struct troupe_elementwise *function = troupe_elementwise_of(call);
    const struct troupe_tensor *x = call->inputs[0];
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_output_like(call, 0, 0, &out);
    if (status == TROUPE_OK)
        troupe_elementwise_apply(call->parallel, function->run[x->dtype], function->grain, out,
                                 &(struct troupe_operands){.count = 1, .inputs = &x});
    return status;
}

enum troupe_status troupe_call_binary(struct troupe_kernel_call *call)
{
    const struct troupe_elementwise *function = troupe_elementwise_of(call);
    const struct troupe_tensor *inputs[] = {call->inputs[0], call->inputs[1]};
    struct troupe_shape x = troupe_shape_of(inputs[0]), y = troupe_shape_of(inputs[1]), shape;
    struct troupe_tensor *out;
    enum troupe_status status = troupe_shape_broadcast(&x, &y, &shape);
    if (status == TROUPE_OK)
        status = troupe_call_output_reusing(call, &shape, &out);
    if (status == TROUPE_OK)
        troupe_elementwise_apply(call->parallel, function->run[inputs[0]->dtype], function->grain,
                                 out, &(struct troupe_operands){.count = 2, .inputs = inputs});
    return status;
}
