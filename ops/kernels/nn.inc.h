/* A template of nn.c, for one floating TYPE. */

/* The row's maximum, and the logarithm of the sum of exp(x - maximum). */
static TYPE NAME(log_sum)(const TYPE *in, int64_t columns, TYPE *maximum)
{
    TYPE largest = -(TYPE)INFINITY, sum = 0;
    for (int64_t i = 0; i < columns; i++)
        largest = in[i] > largest ? in[i] : largest;
    for (int64_t i = 0; i < columns; i++)
        sum += EXP(in[i] - largest);
    *maximum = largest;
    return LOG(sum);
}

static void NAME(softmax)(void *context, int64_t begin, int64_t end)
{
    const struct rows *rows = context;
    int64_t columns = rows->columns;
    for (int64_t r = begin; r < end; r++) {
        const TYPE *in = (const TYPE *)rows->in + r * columns;
        TYPE *out = (TYPE *)rows->out + r * columns;
        TYPE largest = -(TYPE)INFINITY, sum = 0;
        for (int64_t i = 0; i < columns; i++)
            largest = in[i] > largest ? in[i] : largest;
        for (int64_t i = 0; i < columns; i++)
            sum += out[i] = EXP(in[i] - largest);
        for (int64_t i = 0; i < columns; i++)
            out[i] /= sum;
    }
}

static void NAME(log_softmax)(void *context, int64_t begin, int64_t end)
{
    const struct rows *rows = context;
    int64_t columns = rows->columns;
    for (int64_t r = begin; r < end; r++) {
        const TYPE *in = (const TYPE *)rows->in + r * columns;
        TYPE *out = (TYPE *)rows->out + r * columns;
        TYPE maximum, sum = NAME(log_sum)(in, columns, &maximum);
        for (int64_t i = 0; i < columns; i++)
            out[i] = in[i] - maximum - sum;
    }
}

static void NAME(cross_entropy)(void *context, int64_t begin, int64_t end)
{
    const struct rows *rows = context;
    int64_t columns = rows->columns;
    for (int64_t r = begin; r < end; r++) {
        const TYPE *in = (const TYPE *)rows->in + r * columns;
        const TYPE *labels = (const TYPE *)rows->other + r * columns;
        TYPE *backprop = (TYPE *)rows->second + r * columns;
        TYPE maximum, sum = NAME(log_sum)(in, columns, &maximum), loss = 0;
        for (int64_t i = 0; i < columns; i++) {
            TYPE logarithm = in[i] - maximum - sum;
            /* A label of 0 adds nothing, however small the probability. */
            loss -= labels[i] == 0 ? 0 : labels[i] * logarithm;
            backprop[i] = EXP(logarithm) - labels[i];
        }
        ((TYPE *)rows->out)[r] = loss;
    }
}

static void NAME(sparse_cross_entropy)(void *context, int64_t begin, int64_t end)
{
    const struct rows *rows = context;
    int64_t columns = rows->columns;
    for (int64_t r = begin; r < end; r++) {
        const TYPE *in = (const TYPE *)rows->in + r * columns;
        TYPE *backprop = (TYPE *)rows->second + r * columns;
        int64_t label = rows->labels_are_long ? ((const int64_t *)rows->other)[r]
                                              : ((const int32_t *)rows->other)[r];
        TYPE maximum, sum = NAME(log_sum)(in, columns, &maximum);
        for (int64_t i = 0; i < columns; i++)
            backprop[i] = EXP(in[i] - maximum - sum);
        backprop[label] -= 1;
        ((TYPE *)rows->out)[r] = sum - (in[label] - maximum);
    }
}
