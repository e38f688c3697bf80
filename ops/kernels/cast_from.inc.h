/* A template of convert.c: conversions from FROM, named FROM_NAME, to every dtype that is computed
 * with. IS_FLOATING says whether FROM is. */

#define TROUPE_ROW(stem, to_type, value)                                                           \
    static void NAME(stem)(void *out, const void *const *in, const int64_t *steps, int64_t count)  \
    {                                                                                              \
        const FROM *x = in[0];                                                                     \
        to_type *y = out;                                                                          \
        (void)steps;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            FROM a = x[i];                                                                         \
            y[i] = (to_type)(value);                                                               \
        }                                                                                          \
    }
ROWS(TROUPE_ROW)
#undef TROUPE_ROW
