/* Growing text, near names, hashes and maps. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

Test(text, grows)
{
    struct troupe_text text;
    troupe_text_init(&text);
    for (int i = 0; i < 1000; i++)
        troupe_text_addf(&text, "%03d", i);
    troupe_text_add_bytes(&text, "a\0b", 3);
    troupe_text_add(&text, "");
    cr_assert_eq(text.length, 3003);
    char *taken = troupe_text_take(&text);
    cr_assert_eq(memcmp(taken, "000001002", 9), 0);
    cr_assert_eq(memcmp(taken + 3000, "a\0b", 4), 0);
    free(taken);
    taken = troupe_text_take(&text);
    cr_assert_str_eq(taken, "");
    free(taken);
}

Test(text, a_failure_is_kept)
{
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_text_add(&text, "begun");
    text.failed = true;
    troupe_text_add(&text, " more");
    cr_assert_eq(text.length, 5);
    cr_assert_null(troupe_text_take(&text));
}

Test(text, nearest)
{
    const char *const ops[] = {"Add", "MatMul", "BatchMatMul", "Relu", "Mul", "ReluGrad"};
    const size_t count = sizeof(ops) / sizeof(*ops);
    cr_assert_str_eq(troupe_text_nearest("Matmul", ops, count), "MatMul");
    cr_assert_str_eq(troupe_text_nearest("matmul", ops, count), "MatMul");
    cr_assert_str_eq(troupe_text_nearest("RELU", ops, count), "Relu");
    cr_assert_str_eq(troupe_text_nearest("ReluGard", ops, count), "ReluGrad");
    cr_assert_str_eq(troupe_text_nearest("ad", ops, count), "Add");
    cr_assert_null(troupe_text_nearest("Convolution", ops, count));
    cr_assert_null(troupe_text_nearest("z", ops, count));
    cr_assert_null(troupe_text_nearest("", ops, 0));
    char long_name[500];
    memset(long_name, 'q', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    cr_assert_null(troupe_text_nearest(long_name, ops, count));
}

/* The published test vectors of FNV-1a, 64 bits. */
Test(hash, known_answers)
{
    cr_assert_eq(troupe_hash_bytes(TROUPE_HASH_START, "", 0), UINT64_C(0xcbf29ce484222325));
    cr_assert_eq(troupe_hash_bytes(TROUPE_HASH_START, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
    cr_assert_eq(troupe_hash_bytes(TROUPE_HASH_START, "foobar", 6), UINT64_C(0x85944171f73967e8));
    cr_assert_eq(troupe_hash_string(TROUPE_HASH_START, "a"),
                 troupe_hash_bytes(TROUPE_HASH_START, "a\0", 2));
    cr_assert_eq(troupe_hash_u64(TROUPE_HASH_START, 0x0201),
                 troupe_hash_bytes(TROUPE_HASH_START, "\1\2\0\0\0\0\0\0", 8));
}

Test(name_map, finds_what_was_put)
{
    enum { COUNT = 2000 };
    static char names[COUNT][16];
    struct troupe_name_map map;
    troupe_name_map_init(&map);
    cr_assert_eq(troupe_name_map_get(&map, "x"), -1);
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "node%d", i);
        cr_assert_eq(troupe_name_map_put(&map, names[i], i), 0);
    }
    cr_assert_eq(troupe_name_map_put(&map, "node7", 70), 0);
    cr_assert_eq(map.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(troupe_name_map_get(&map, names[i]), i == 7 ? 70 : i);
    cr_assert_eq(troupe_name_map_get(&map, "node"), -1);
    troupe_name_map_fini(&map);
}
