/* A template of select.c: elements of one size, as TYPE. */

static void NAME(select)(void *out, const void *const *in, const int64_t *steps, int64_t count)
{
    const uint8_t *condition = in[0];
    const TYPE *then = in[1], *otherwise = in[2];
    TYPE *z = out;
    if (steps[0] == 0) {
        const TYPE *chosen = *condition ? then : otherwise;
        int64_t step = steps[*condition ? 1 : 2];
        for (int64_t i = 0; i < count; i++)
            z[i] = chosen[i * step];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        TYPE a = then[i * steps[1]], b = otherwise[i * steps[2]];
        z[i] = condition[i] ? a : b;
    }
}
