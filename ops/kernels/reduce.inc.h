/* A template of reduce.c, for one TYPE and the ROWS (stem, identity, what becomes of a and b). */

#define TROUPE_ROW(stem, identity, value)                                                          \
    static void NAME(stem##_start)(void *out, int64_t count)                                       \
    {                                                                                              \
        TYPE *z = out;                                                                             \
        for (int64_t i = 0; i < count; i++)                                                        \
            z[i] = (TYPE)(identity);                                                               \
    }                                                                                              \
    static void NAME(stem##_chain)(void *out, const void *in, int64_t count)                       \
    {                                                                                              \
        const TYPE *x = in;                                                                        \
        TYPE a = *(TYPE *)out;                                                                     \
        for (int64_t i = 0; i < count; i++) {                                                      \
            TYPE b = x[i];                                                                         \
            a = (TYPE)(value);                                                                     \
        }                                                                                          \
        *(TYPE *)out = a;                                                                          \
    }                                                                                              \
    static void NAME(stem##_strips)(void *lanes, const void *in, int64_t count)                    \
    {                                                                                              \
        TYPE *restrict z = lanes;                                                                  \
        const TYPE *restrict x = in;                                                               \
        for (; count > 0; count--, x += TROUPE_LANES) {                                            \
            for (int i = 0; i < TROUPE_LANES; i++) {                                               \
                TYPE a = z[i], b = x[i];                                                           \
                z[i] = (TYPE)(value);                                                              \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void NAME(stem##_join)(void *out, const void *in, int64_t count)                        \
    {                                                                                              \
        TYPE *restrict z = out;                                                                    \
        const TYPE *restrict x = in;                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            TYPE a = z[i], b = x[i];                                                               \
            z[i] = (TYPE)(value);                                                                  \
        }                                                                                          \
    }                                                                                              \
    static const struct reduction NAME(stem) = {NAME(stem##_start), NAME(stem##_chain),            \
                                                NAME(stem##_strips), NAME(stem##_join)};
ROWS(TROUPE_ROW)
#undef TROUPE_ROW
