/* Graph files. Invariant: a graph is given out only when the file had no error at all; otherwise
 * every error that could be told from the others is in the diagnostics. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/file.h"
#include "graph/frames.h"
#include "graph/load.h"
#include "graph/lower.h"

static const struct troupe_json_path root_nodes = {NULL, "node", 0};

static const char *const root_keys[] = {"node", "versions", "library",  "train",
                                        "loop", "cluster",  "strategy", "seed"};

void troupe_loader_error(struct troupe_loader *loader, const struct troupe_json_path *path,
                         bool at_key, const char *format, ...)
{
    struct troupe_place place = troupe_positions_find(&loader->positions, path, at_key);
    char *message = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&message, format, arguments) < 0)
        message = NULL;
    va_end(arguments);
    troupe_diagnostics_add(loader->diagnostics, loader->path, place.line, place.column, "%s",
                           message != NULL ? message : "(no memory for the message)");
    free(message);
}

const char *troupe_loader_suggest(const char *name, const char *const *candidates, size_t count,
                                  char out[TROUPE_SUGGESTION_MAX])
{
    const char *near = troupe_text_nearest(name, candidates, count);

    out[0] = '\0';
    if (near != NULL)
        snprintf(out, TROUPE_SUGGESTION_MAX, " (did you mean \"%.120s\"?)", near);
    return out;
}

static bool key_is_known(const char *key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(keys[i], key) == 0)
            return true;
    }
    return false;
}

bool troupe_loader_check_keys(struct troupe_loader *loader, const struct troupe_json_path *path,
                              const char *where, json_t *object, const char *const *keys,
                              size_t count)
{
    char suggestion[TROUPE_SUGGESTION_MAX];
    bool right = true;
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const struct troupe_json_path at = {path, key, 0};

        if (key_is_known(key, keys, count))
            continue;
        troupe_loader_suggest(key, keys, count, suggestion);
        troupe_loader_error(loader, &at, true, "%sno key \"%s\" is known here%s", where, key,
                            suggestion);
        right = false;
    }
    return right;
}

static void load_seed(struct troupe_loader *loader, json_t *root, uint64_t seed)
{
    const struct troupe_json_path at = {NULL, "seed", 0};
    const json_t *json = json_object_get(root, "seed");

    loader->graph->seed = seed;
    if (json == NULL)
        return;
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        troupe_loader_error(loader, &at, false, "\"seed\" wants an int from 0");
    else if (seed == 0)
        loader->graph->seed = (uint64_t)json_integer_value(json);
}

/* The rules of a graph's frames. */
static enum troupe_status check_frames(struct troupe_loader *loader,
                                       const struct troupe_graph *graph)
{
    struct troupe_frames *frames;
    enum troupe_status status = troupe_frames_find(graph, &frames);

    if (status == TROUPE_OK)
        troupe_frames_destroy(frames);
    if (status != TROUPE_INVALID_ARGUMENT)
        return status;
    troupe_diagnostics_add(loader->diagnostics, NULL, 0, 0, "%s", troupe_status_message());
    return TROUPE_OK;
}

/* Inference, and what can only be told, or done, with dtypes and shapes. */
static enum troupe_status complete(struct troupe_loader *loader)
{
    struct troupe_graph *graph = loader->graph;
    enum troupe_status status = troupe_lower_signatures(graph, loader->diagnostics);

    if (status == TROUPE_OK)
        status = troupe_graph_infer_all(graph, 0, loader->diagnostics);
    if (status == TROUPE_OK && loader->diagnostics->count == 0)
        status = troupe_lower(graph, loader->diagnostics);
    if (status != TROUPE_OK || loader->diagnostics->count > 0)
        return status;
    status = check_frames(loader, graph);
    for (int i = 0; graph->library != NULL && i < graph->library->count; i++) {
        if (status == TROUPE_OK)
            status = check_frames(loader, graph->library->functions[i].body);
    }
    return status;
}

static enum troupe_status load_root(struct troupe_loader *loader, json_t *root, uint64_t seed)
{
    const struct troupe_json_path versions = {NULL, "versions", 0};
    const json_t *nodes = json_object_get(root, "node");
    enum troupe_status status;

    if (!json_is_object(root)) {
        troupe_loader_error(loader, NULL, false, "a graph wants an object with \"node\"");
        return TROUPE_OK;
    }
    (void)troupe_loader_check_keys(loader, NULL, "", root, root_keys,
                                   sizeof(root_keys) / sizeof(root_keys[0]));
    if (json_object_get(root, "versions") != NULL &&
        !json_is_object(json_object_get(root, "versions")))
        troupe_loader_error(loader, &versions, false, "\"versions\" wants an object");
    load_seed(loader, root, seed);
    if (!json_is_array(nodes) || json_array_size(nodes) > INT_MAX / 2) {
        troupe_loader_error(loader, &root_nodes, false, "a graph wants \"node\", a list of nodes");
        return TROUPE_OK;
    }
    loader->broken = troupe_calloc(json_array_size(nodes) + 1, sizeof(*loader->broken));
    if (loader->broken == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    status = troupe_graph_reserve(loader->graph, (int)json_array_size(nodes));
    if (status == TROUPE_OK)
        status = troupe_load_names(loader, nodes);
    if (status == TROUPE_OK)
        status = troupe_load_library(loader, root);
    if (status == TROUPE_OK)
        status = troupe_load_nodes(loader, nodes);
    if (status == TROUPE_OK)
        status = complete(loader);
    if (status == TROUPE_OK)
        status = troupe_load_sections(loader, root);
    return status;
}

static enum troupe_status load_text(struct troupe_loader *loader, const char *text, size_t length,
                                    uint64_t seed)
{
    const struct troupe_positions whole = {.text = text, .length = length};
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    enum troupe_status status;

    if (root == NULL) {
        troupe_diagnostics_add(loader->diagnostics, loader->path, error.line > 0 ? error.line : 1,
                               error.column > 0 ? error.column : 1, "%s", error.text);
        return TROUPE_OK;
    }
    status = troupe_positions_init(&loader->positions, &whole, &root_nodes,
                                   json_array_size(json_object_get(root, "node")));
    if (status == TROUPE_OK)
        status = load_root(loader, root, seed);
    troupe_positions_fini(&loader->positions);
    free(loader->broken);
    json_decref(root);
    return status;
}

enum troupe_status troupe_graph_parse(const char *text, size_t length, const char *path,
                                      uint64_t seed, struct troupe_diagnostics *diagnostics,
                                      struct troupe_graph **out)
{
    struct troupe_loader loader = {.path = path, .nodes = &root_nodes, .diagnostics = diagnostics};
    enum troupe_status status = troupe_graph_create(&loader.graph);

    if (status != TROUPE_OK)
        return status;
    loader.graph->path = troupe_strdup(path);
    status = loader.graph->path != NULL ? load_text(&loader, text, length, seed)
                                        : TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK)
        status = troupe_diagnostics_close(diagnostics);
    if (status != TROUPE_OK) {
        troupe_graph_destroy(loader.graph);
        return status;
    }
    *out = loader.graph;
    return TROUPE_OK;
}

enum troupe_status troupe_graph_load(const char *path, uint64_t seed,
                                     struct troupe_diagnostics *diagnostics,
                                     struct troupe_graph **out)
{
    enum troupe_status status;
    size_t length;
    char *text;

    status = troupe_file_read(path, &text, &length);
    if (status == TROUPE_RESOURCE_EXHAUSTED)
        return status;
    if (status != TROUPE_OK)
        return TROUPE_UNAVAILABLE; /* the message names the file and the reason */
    status = troupe_graph_parse(text, length, path, seed, diagnostics, out);
    free(text);
    return status;
}
