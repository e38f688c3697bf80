/* A template of update.c: variable += value and variable -= value, for one TYPE. */

static void NAME(add)(const struct update *update, int64_t begin, int64_t end)
{
    TYPE *state = update->state[0];
    const TYPE *value = update->value;
    for (int64_t i = begin; i < end; i++)
        state[i] = (TYPE)(state[i] + value[i]);
}

static void NAME(subtract)(const struct update *update, int64_t begin, int64_t end)
{
    TYPE *state = update->state[0];
    const TYPE *value = update->value;
    for (int64_t i = begin; i < end; i++)
        state[i] = (TYPE)(state[i] - value[i]);
}
