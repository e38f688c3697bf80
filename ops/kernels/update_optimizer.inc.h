/* A template of update.c: optimizers, for one floating TYPE. Scalars are in the op's order. */

static void NAME(descend)(const struct update *update, int64_t begin, int64_t end)
{
    TYPE *variable = update->state[0];
    const TYPE *delta = update->value, alpha = (TYPE)update->scalars[0];
    for (int64_t i = begin; i < end; i++)
        variable[i] -= alpha * delta[i];
}

static void NAME(momentum)(const struct update *update, int64_t begin, int64_t end)
{
    TYPE *restrict variable = update->state[0], *restrict accum = update->state[1];
    const TYPE *gradient = update->value;
    const TYPE rate = (TYPE)update->scalars[0], momentum = (TYPE)update->scalars[1];
    for (int64_t i = begin; i < end; i++) {
        accum[i] = momentum * accum[i] + gradient[i];
        variable[i] -= rate * (update->nesterov ? gradient[i] + momentum * accum[i] : accum[i]);
    }
}

static void NAME(adam)(const struct update *update, int64_t begin, int64_t end)
{
    TYPE *restrict variable = update->state[0], *restrict m = update->state[1],
                   *restrict v = update->state[2];
    const TYPE *gradient = update->value;
    const TYPE beta1_power = (TYPE)update->scalars[0], beta2_power = (TYPE)update->scalars[1];
    const TYPE rate = (TYPE)update->scalars[2], beta1 = (TYPE)update->scalars[3];
    const TYPE beta2 = (TYPE)update->scalars[4], epsilon = (TYPE)update->scalars[5];
    const TYPE step = rate * ROOT(1 - beta2_power) / (1 - beta1_power);
    for (int64_t i = begin; i < end; i++) {
        m[i] += (gradient[i] - m[i]) * (1 - beta1);
        v[i] += (gradient[i] * gradient[i] - v[i]) * (1 - beta2);
        TYPE direction = update->nesterov ? gradient[i] * (1 - beta1) + beta1 * m[i] : m[i];
        variable[i] -= step * direction / (ROOT(v[i]) + epsilon);
    }
}
