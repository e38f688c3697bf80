/* A template of gather.c: to[i] += from[i], for one TYPE. */

static void NAME(add_row)(void *to, const void *from, int64_t count)
{
    TYPE *restrict sum = to;
    const TYPE *restrict row = from;
    for (int64_t i = 0; i < count; i++)
        sum[i] = (TYPE)(sum[i] + row[i]);
}
