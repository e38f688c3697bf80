/* The registry of ops. Invariant: it is built once, from rows that are all well formed, and never
 * changes afterwards, so that any thread reads it without a lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "ops/families.h"
#include "ops/schema.h"

struct family {
    const struct troupe_op *ops;
    const size_t *count;
};

static const struct family families[] = {
    {troupe_ops_math, &troupe_ops_math_count},
    {troupe_ops_nn, &troupe_ops_nn_count},
    {troupe_ops_reduce, &troupe_ops_reduce_count},
    {troupe_ops_matmul, &troupe_ops_matmul_count},
    {troupe_ops_array, &troupe_ops_array_count},
    {troupe_ops_random, &troupe_ops_random_count},
    {troupe_ops_state, &troupe_ops_state_count},
    {troupe_ops_control, &troupe_ops_control_count},
    {troupe_ops_flow, &troupe_ops_flow_count},
    {troupe_ops_functions, &troupe_ops_functions_count},
    {troupe_ops_list, &troupe_ops_list_count},
    {troupe_ops_tensor_array, &troupe_ops_tensor_array_count},
    {troupe_ops_queue, &troupe_ops_queue_count},
    {troupe_ops_accumulator, &troupe_ops_accumulator_count},
    {troupe_ops_data, &troupe_ops_data_count},
    {troupe_ops_collective, &troupe_ops_collective_count},
    {NULL, NULL},
};

static struct {
    pthread_once_t once;
    struct troupe_arena arena;
    struct troupe_op_schema *schemas;
    const struct troupe_op_schema **sorted;
    const char **names; /* of `sorted`, in its order */
    size_t count;
    struct troupe_name_map by_name; /* to an index into `sorted` */
} registry = {.once = PTHREAD_ONCE_INIT};

/* A wrong row is a defect of the build, which no caller can do anything about. */
static void registry_abort(const char *why)
{
    fprintf(stderr, "troupe: the op registry is wrong: %s\n", why);
    abort();
}

static int schema_compare(const void *a, const void *b)
{
    const struct troupe_op_schema *const *x = a, *const *y = b;
    return strcmp((*x)->op->name, (*y)->op->name);
}

static void registry_parse(void)
{
    size_t next = 0;
    for (const struct family *family = families; family->ops; family++) {
        for (size_t i = 0; i < *family->count; i++) {
            struct troupe_op_schema *schema = &registry.schemas[next];
            if (troupe_op_schema_parse(&family->ops[i], &registry.arena, schema) != TROUPE_OK)
                registry_abort(troupe_status_message());
            registry.sorted[next++] = schema;
        }
    }
}

static void registry_build(void)
{
    size_t count = 0;
    for (const struct family *family = families; family->ops; family++)
        count += *family->count;
    troupe_arena_init(&registry.arena);
    troupe_name_map_init(&registry.by_name);
    registry.schemas = troupe_calloc(count, sizeof(*registry.schemas));
    registry.sorted = troupe_calloc(count, sizeof(*registry.sorted));
    registry.names = troupe_calloc(count, sizeof(*registry.names));
    if (!registry.schemas || !registry.sorted || !registry.names)
        registry_abort(troupe_status_message());
    registry.count = count;
    registry_parse();
    qsort(registry.sorted, count, sizeof(*registry.sorted), schema_compare);
    for (size_t i = 0; i < count; i++) {
        const char *name = registry.sorted[i]->op->name;
        registry.names[i] = name;
        if (i > 0 && strcmp(registry.names[i - 1], name) == 0)
            registry_abort(name);
        if (troupe_name_map_put(&registry.by_name, name, (int)i) != 0)
            registry_abort(troupe_status_message());
    }
}

const struct troupe_op_schema *troupe_op_find(const char *name)
{
    pthread_once(&registry.once, registry_build);
    int index = troupe_name_map_get(&registry.by_name, name);
    return index < 0 ? NULL : registry.sorted[index];
}

const struct troupe_op_schema *const *troupe_op_list(size_t *count_out)
{
    pthread_once(&registry.once, registry_build);
    *count_out = registry.count;
    return registry.sorted;
}

const char *troupe_op_suggest(const char *name)
{
    pthread_once(&registry.once, registry_build);
    return troupe_text_nearest(name, registry.names, registry.count);
}
