/* docs/graph.schema.json and the reader know the same keys. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

/* A place in a graph file, its keys, the schema's object for it, and a file around a key. */
struct level {
    const char *keys, *definition, *before, *after;
};

static const struct level levels[] = {
    {"node train loop cluster strategy seed versions library", NULL, "{", "}"},
    {"name op input device attr experimentalDebugInfo", "node", "{\"node\": [{", "}]}"},
    {"loss optimizer variables", "train", "{\"node\": [], \"train\": {", "}}"},
    {"run steps every after with until timeout staleness examples show mean", "loop",
     "{\"node\": [], \"loop\": {\"l\": {", "}}}"},
    {"function gradient registeredGradients", "library", "{\"node\": [], \"library\": {", "}}"},
    {"name input output node", "function",
     "{\"node\": [], \"library\": {\"function\": [{\"name\": \"f\", ", "}]}}"},
    {"name dtype shape", "function_input",
     "{\"node\": [], \"library\": {\"function\": [{\"name\": \"f\", \"node\": [], \"input\": [{",
     "}]}]}}"},
    {"name value dtype shape", "function_output",
     "{\"node\": [], \"library\": {\"function\": [{\"name\": \"f\", \"node\": [], \"output\": [{",
     "}]}]}}"},
};

static bool is_unknown(const struct level *level, const char *key)
{
    struct troupe_diagnostics diagnostics;
    struct troupe_graph *graph = NULL;
    char text[256];
    bool unknown;

    troupe_diagnostics_init(&diagnostics);
    snprintf(text, sizeof(text), "%s\"%s\": null%s", level->before, key, level->after);
    if (troupe_graph_parse(text, strlen(text), "g.json", 0, &diagnostics, &graph) == TROUPE_OK)
        troupe_graph_destroy(graph);
    unknown = diagnostics.count > 0 && strstr(troupe_status_message(), "is known here") != NULL;
    troupe_diagnostics_fini(&diagnostics);
    return unknown;
}

static const json_t *properties(const json_t *schema, const struct level *level)
{
    if (level->definition != NULL)
        schema = json_object_get(json_object_get(schema, "definitions"), level->definition);
    cr_assert(json_is_false(json_object_get(schema, "additionalProperties")));
    return json_object_get(schema, "properties");
}

Test(schema, knows_the_keys_that_the_reader_knows)
{
    json_error_t error;
    json_t *schema = json_load_file(SCHEMA_PATH, 0, &error);

    cr_assert_not_null(schema, "%s", error.text);
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        const json_t *keys = properties(schema, &levels[i]);
        char list[160], *rest = NULL;
        size_t count = 0;

        snprintf(list, sizeof(list), "%s", levels[i].keys);
        for (char *key = strtok_r(list, " ", &rest); key != NULL;
             key = strtok_r(NULL, " ", &rest), count++) {
            cr_assert_not_null(json_object_get(keys, key), "the schema lacks \"%s\"", key);
            cr_assert_not(is_unknown(&levels[i], key), "the reader lacks \"%s\"", key);
        }
        cr_assert_eq(json_object_size(keys), count, "the schema has more keys: level %zu", i);
        cr_assert(is_unknown(&levels[i], "colour"));
    }
    json_decref(schema);
}
