/* A template of reduce.c, for one TYPE: where along an axis the largest or least element is. */

/* The first of equal elements; NaN loses against everything. */
static inline int64_t NAME(place)(const TYPE *in, int64_t count, int64_t step, bool wants_least)
{
    int64_t place = 0;
    TYPE best = in[0];
    for (int64_t i = 1; i < count; i++) {
        TYPE a = in[i * step];
        if ((wants_least ? a < best : a > best) || (IS_NAN(best) && !IS_NAN(a))) {
            best = a;
            place = i;
        }
    }
    return place;
}

static void NAME(places)(void *context, int64_t begin, int64_t end)
{
    const struct search *search = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / search->inner, inner = i % search->inner;
        const TYPE *in = (const TYPE *)search->in + outer * search->count * search->inner + inner;
        int64_t place = NAME(place)(in, search->count, search->inner, search->wants_least);
        if (search->is_long)
            ((int64_t *)search->out)[i] = place;
        else
            ((int32_t *)search->out)[i] = (int32_t)place;
    }
}
