/* `train`, `loop`, `cluster` and `strategy` from JSON. Invariant: what was read so far hangs from
 * graph->sections at any time, so that an error leaves nothing behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/literal.h"
#include "graph/load.h"

#define RANKS_MAX     65536
#define SECONDS_MAX   1e9
#define STALENESS_MAX 1024

/* Where a section's errors are, and what goes before them. */
struct section {
    struct troupe_loader *loader;
    const struct troupe_json_path *path;
    const char *where;         /* "train: " */
    enum troupe_status status; /* RESOURCE_EXHAUSTED ends the reading */
};

static const char *const optimizers[] = {"GradientDescent", "Momentum", "Adam", "SGD"};
#define OPTIMIZER_COUNT (sizeof(optimizers) / sizeof(optimizers[0]))
/* The hyperparameters of each optimizer. */
static const char *const optimizer_keys[][6] = {
    {"type", "learning_rate"},
    {"type", "learning_rate", "momentum", "use_nesterov"},
    {"type", "learning_rate", "beta1", "beta2", "epsilon", "use_nesterov"},
    {"type", "learning_rate"},
};
static const size_t optimizer_key_counts[] = {2, 4, 6, 2};

static bool section_copy(struct section *section, const char *text, char **out)
{
    *out = troupe_strdup(text);
    if (*out == NULL)
        section->status = TROUPE_RESOURCE_EXHAUSTED;
    return *out != NULL;
}

static void *section_alloc(struct section *section, size_t count, size_t bytes)
{
    void *memory = troupe_calloc(count > 0 ? count : 1, bytes);

    if (memory == NULL)
        section->status = TROUPE_RESOURCE_EXHAUSTED;
    return memory;
}

/* True when `text` is a value of the graph; a node with an error counts, being told already. */
static bool section_check_value(struct section *section, const struct troupe_json_path *at,
                                const char *text)
{
    struct troupe_value value;

    /* The node "train" is made by the section of that name, after loading. */
    if (strcmp(text, "train") == 0 && section->loader->graph->sections->train != NULL)
        return true;
    if (troupe_graph_value(section->loader->graph, text, &value) == TROUPE_OK)
        return true;
    troupe_loader_error(section->loader, at, false, "%s%s", section->where,
                        troupe_status_message());
    return false;
}

/* True when `text` is a node, which need not have outputs. */
static bool section_check_node(struct section *section, const struct troupe_json_path *at,
                               const char *text)
{
    return troupe_graph_find(section->loader->graph, text) >= 0 ||
           section_check_value(section, at, text);
}

/* A string member; `must` makes its absence an error. Checked as a value unless `plain`. */
static bool read_string(struct section *section, const json_t *object, const char *key, bool must,
                        bool plain, char **out)
{
    const struct troupe_json_path at = {section->path, key, 0};
    const json_t *json = json_object_get(object, key);
    char text[TROUPE_JSON_TEXT_MAX];

    if (json == NULL && !must)
        return true;
    if (!json_is_string(json)) {
        if (json == NULL)
            troupe_loader_error(section->loader, section->path, false, "%swants \"%s\", a string",
                                section->where, key);
        else
            troupe_loader_error(section->loader, &at, false, "%s\"%s\" wants a string, got %s",
                                section->where, key, troupe_json_describe(json, text));
        return false;
    }
    if (!plain && !section_check_value(section, &at, json_string_value(json)))
        return false;
    return section_copy(section, json_string_value(json), out);
}

typedef bool section_check_fn(struct section *section, const struct troupe_json_path *at,
                              const char *text);

/* A list of node names or values. */
static void read_strings(struct section *section, const json_t *object, const char *key,
                         section_check_fn *check, char ***out, int *count)
{
    const struct troupe_json_path list_path = {section->path, key, 0};
    const json_t *list = json_object_get(object, key);

    if (list == NULL)
        return;
    if (!json_is_array(list)) {
        troupe_loader_error(section->loader, &list_path, false, "%s\"%s\" wants a list of names",
                            section->where, key);
        return;
    }
    *out = section_alloc(section, json_array_size(list), sizeof(**out));
    for (size_t i = 0; *out != NULL && i < json_array_size(list); i++) {
        const struct troupe_json_path at = {&list_path, NULL, i};
        const char *name = json_string_value(json_array_get(list, i));

        if (name == NULL)
            troupe_loader_error(section->loader, &at, false, "%s\"%s\" wants names, each a string",
                                section->where, key);
        else if (check(section, &at, name) && section_copy(section, name, &(*out)[*count]))
            (*count)++;
    }
}

static void read_count(struct section *section, const json_t *object, const char *key,
                       int64_t maximum, int64_t *out)
{
    const struct troupe_json_path at = {section->path, key, 0};
    const json_t *json = json_object_get(object, key);
    char text[TROUPE_JSON_TEXT_MAX];

    if (json == NULL)
        return;
    if (json_is_integer(json) && json_integer_value(json) >= 0 &&
        json_integer_value(json) <= maximum)
        *out = json_integer_value(json);
    else if (maximum < INT64_MAX)
        troupe_loader_error(section->loader, &at, false,
                            "%s\"%s\" wants an int from 0 to %lld, got %s", section->where, key,
                            (long long)maximum, troupe_json_describe(json, text));
    else
        troupe_loader_error(section->loader, &at, false, "%s\"%s\" wants an int from 0, got %s",
                            section->where, key, troupe_json_describe(json, text));
}

/* A number of seconds, as milliseconds. */
static void read_seconds(struct section *section, const json_t *object, const char *key,
                         int64_t *out)
{
    const struct troupe_json_path at = {section->path, key, 0};
    const json_t *json = json_object_get(object, key);
    double seconds = json_number_value(json);
    char text[TROUPE_JSON_TEXT_MAX];

    if (json == NULL)
        return;
    if (json_is_number(json) && seconds >= 0.001 && seconds <= SECONDS_MAX)
        *out = (int64_t)(seconds * 1000.0 + 0.5);
    else
        troupe_loader_error(section->loader, &at, false,
                            "%s\"%s\" wants seconds, from 0.001 to %.0f, got %s", section->where,
                            key, SECONDS_MAX, troupe_json_describe(json, text));
}

/* {"result": "node:port"}. */
static void read_named_values(struct section *section, const json_t *object, const char *key,
                              struct troupe_named_value **out, int *count)
{
    const struct troupe_json_path map_path = {section->path, key, 0};
    json_t *map = json_object_get(object, key), *value;
    const char *name;

    if (map == NULL)
        return;
    if (!json_is_object(map)) {
        troupe_loader_error(section->loader, &map_path, false,
                            "%s\"%s\" wants an object of names and values", section->where, key);
        return;
    }
    *out = section_alloc(section, json_object_size(map), sizeof(**out));
    if (*out == NULL)
        return;
    json_object_foreach(map, name, value)
    {
        const struct troupe_json_path at = {&map_path, name, 0};

        if (!json_is_string(value)) {
            troupe_loader_error(section->loader, &at, false,
                                "%s\"%s\" wants \"node\" or \"node:port\" for each name",
                                section->where, key);
            continue;
        }
        if (!section_check_value(section, &at, json_string_value(value)))
            continue;
        if (section_copy(section, name, &(*out)[*count].name))
            (void)section_copy(section, json_string_value(value), &(*out)[(*count)++].value);
    }
}

static void read_hyperparameter(struct section *section, struct troupe_train_section *train,
                                const char *key, const json_t *json)
{
    const struct troupe_json_path at = {section->path, key, 0};
    struct troupe_named_attr *attr = &train->hyperparameters[train->hyperparameter_count];
    char text[TROUPE_JSON_TEXT_MAX];
    bool wants_bool = strcmp(key, "use_nesterov") == 0;

    if (wants_bool ? !json_is_boolean(json) : !json_is_number(json)) {
        troupe_loader_error(section->loader, &at, false, "%s\"%s\" wants a %s, got %s",
                            section->where, key, wants_bool ? "bool" : "number",
                            troupe_json_describe(json, text));
        return;
    }
    if (!section_copy(section, key, &attr->name))
        return;
    attr->value = wants_bool ? troupe_attr_bool(json_is_true(json))
                             : troupe_attr_float(json_number_value(json));
    train->hyperparameter_count++;
}

static void read_optimizer(struct section *train_section, struct troupe_train_section *train,
                           const json_t *object)
{
    const struct troupe_json_path path = {train_section->path, "optimizer", 0};
    struct section section = {train_section->loader, &path, "train: optimizer: ", TROUPE_OK};
    json_t *json = json_object_get(object, "optimizer"), *value;
    char suggestion[TROUPE_SUGGESTION_MAX];
    const char *key;
    size_t which = 0;

    if (!json_is_object(json)) {
        troupe_loader_error(section.loader, json != NULL ? &path : train_section->path, false,
                            "train: wants \"optimizer\", such as {\"type\": \"Momentum\", "
                            "\"learning_rate\": 0.1, \"momentum\": 0.9}");
        return;
    }
    if (!read_string(&section, json, "type", true, true, &train->optimizer))
        return;
    while (which < OPTIMIZER_COUNT && strcmp(optimizers[which], train->optimizer) != 0)
        which++;
    if (which == OPTIMIZER_COUNT) {
        const struct troupe_json_path at = {&path, "type", 0};

        troupe_loader_error(
            section.loader, &at, false,
            "train: optimizer: no type \"%s\"%s; there are GradientDescent, "
            "Momentum and Adam",
            train->optimizer,
            troupe_loader_suggest(train->optimizer, optimizers, OPTIMIZER_COUNT, suggestion));
        return;
    }
    train->hyperparameters =
        section_alloc(&section, json_object_size(json), sizeof(*train->hyperparameters));
    if (train->hyperparameters != NULL &&
        troupe_loader_check_keys(section.loader, &path, section.where, json, optimizer_keys[which],
                                 optimizer_key_counts[which])) {
        json_object_foreach(json, key, value)
        {
            if (strcmp(key, "type") != 0)
                read_hyperparameter(&section, train, key, value);
        }
    }
    if (section.status != TROUPE_OK)
        train_section->status = section.status;
}

static enum troupe_status load_train(struct troupe_loader *loader, json_t *root)
{
    static const char *const keys[] = {"loss", "optimizer", "variables"};
    const struct troupe_json_path path = {NULL, "train", 0};
    struct section section = {loader, &path, "train: ", TROUPE_OK};
    json_t *json = json_object_get(root, "train");
    struct troupe_train_section *train;
    struct troupe_place place;

    if (json == NULL)
        return TROUPE_OK;
    if (!json_is_object(json)) {
        troupe_loader_error(loader, &path, false,
                            "\"train\" wants an object with \"loss\" and \"optimizer\"");
        return TROUPE_OK;
    }
    train = troupe_calloc(1, sizeof(*train));
    if (train == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    loader->graph->sections->train = train;
    place = troupe_positions_find(&loader->positions, &path, true);
    train->line = place.line;
    train->column = place.column;
    (void)troupe_loader_check_keys(loader, &path, section.where, json, keys, 3);
    (void)read_string(&section, json, "loss", true, false, &train->loss);
    read_optimizer(&section, train, json);
    read_strings(&section, json, "variables", section_check_value, &train->variables,
                 &train->variable_count);
    return section.status;
}

static enum troupe_status load_one_loop(struct troupe_loader *loader,
                                        const struct troupe_json_path *path, json_t *json)
{
    static const char *const keys[] = {"run",  "steps", "every",   "after",     "examples", "show",
                                       "mean", "until", "timeout", "staleness", "with"};
    struct troupe_sections *sections = loader->graph->sections;
    struct troupe_loop_section *loop = &sections->loops[sections->loop_count++];
    struct troupe_place place = troupe_positions_find(&loader->positions, path, true);
    char where[TROUPE_NODE_TEXT_MAX];
    struct section section = {loader, path, where, TROUPE_OK};

    snprintf(where, sizeof(where), "loop \"%.400s\": ", path->key);
    loop->line = place.line;
    loop->column = place.column;
    if (!section_copy(&section, path->key, &loop->name))
        return section.status;
    if (!json_is_object(json)) {
        troupe_loader_error(loader, path, false, "%swants an object", where);
        return TROUPE_OK;
    }
    (void)troupe_loader_check_keys(loader, path, where, json, keys, sizeof(keys) / sizeof(keys[0]));
    (void)read_string(&section, json, "after", false, true, &loop->after);
    (void)read_string(&section, json, "with", false, true, &loop->with);
    (void)read_string(&section, json, "until", false, false, &loop->until);
    if (loop->after != NULL && loop->with != NULL)
        troupe_loader_error(loader, path, false,
                            "%swants \"after\" or \"with\", not both: it starts once", where);
    read_seconds(&section, json, "timeout", &loop->timeout_ms);
    read_count(&section, json, "staleness", STALENESS_MAX, &loop->staleness);
    read_count(&section, json, "steps", INT64_MAX, &loop->steps);
    read_count(&section, json, "every", INT64_MAX, &loop->every);
    (void)read_string(&section, json, "examples", false, false, &loop->examples);
    read_named_values(&section, json, "show", &loop->show, &loop->show_count);
    read_named_values(&section, json, "mean", &loop->mean, &loop->mean_count);
    read_strings(&section, json, "run", section_check_node, &loop->run, &loop->run_count);
    return section.status;
}

/* The loop that is named as the one before, or beside, a loop; NULL for none. */
static const char *loop_before(const struct troupe_loop_section *loop)
{
    return loop->after != NULL ? loop->after : loop->with;
}

static int loop_find(const struct troupe_sections *sections, const char *name)
{
    for (int i = 0; i < sections->loop_count; i++)
        if (strcmp(sections->loops[i].name, name) == 0)
            return i;
    return -1;
}

static void report_no_loop(struct troupe_loader *loader, const struct troupe_json_path *at,
                           const struct troupe_loop_section *loop)
{
    const struct troupe_sections *sections = loader->graph->sections;
    const char **names = troupe_calloc((size_t)sections->loop_count + 1, sizeof(*names));
    char suggestion[TROUPE_SUGGESTION_MAX];

    for (int n = 0; names != NULL && n < sections->loop_count; n++)
        names[n] = sections->loops[n].name;
    troupe_loader_error(loader, at, false, "loop \"%s\": \"%s\" names no loop \"%s\"%s", loop->name,
                        at->key, loop_before(loop),
                        troupe_loader_suggest(loop_before(loop), names,
                                              names != NULL ? (size_t)sections->loop_count : 0,
                                              suggestion));
    free(names);
}

/* `after` and `with` name a loop, and following them ends. */
static void check_order(struct troupe_loader *loader, const struct troupe_json_path *loops_path)
{
    const struct troupe_sections *sections = loader->graph->sections;

    for (int i = 0; i < sections->loop_count; i++) {
        const struct troupe_loop_section *loop = &sections->loops[i];
        const struct troupe_json_path path = {loops_path, loop->name, 0};
        const struct troupe_json_path at = {&path, loop->after != NULL ? "after" : "with", 0};
        int next = i, hops = 0;

        while (next >= 0 && hops <= sections->loop_count &&
               loop_before(&sections->loops[next]) != NULL) {
            next = loop_find(sections, loop_before(&sections->loops[next]));
            if (next < 0 && hops == 0)
                report_no_loop(loader, &at, loop);
            hops++;
        }
        if (hops > sections->loop_count)
            troupe_loader_error(loader, &at, false,
                                "loop \"%s\": \"%s\" leads back to a loop before it", loop->name,
                                at.key);
    }
}

static enum troupe_status load_loops(struct troupe_loader *loader, json_t *root)
{
    const struct troupe_json_path path = {NULL, "loop", 0};
    json_t *loops = json_object_get(root, "loop"), *value;
    struct troupe_sections *sections = loader->graph->sections;
    enum troupe_status status = TROUPE_OK;
    const char *key;

    if (loops == NULL)
        return TROUPE_OK;
    if (!json_is_object(loops)) {
        troupe_loader_error(loader, &path, false, "\"loop\" wants an object of loops by name");
        return TROUPE_OK;
    }
    sections->loops = troupe_calloc(json_object_size(loops) + 1, sizeof(*sections->loops));
    if (sections->loops == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    json_object_foreach(loops, key, value)
    {
        const struct troupe_json_path at = {&path, key, 0};

        if (status == TROUPE_OK)
            status = load_one_loop(loader, &at, value);
    }
    if (status == TROUPE_OK)
        check_order(loader, &path);
    return status;
}

static enum troupe_status load_job(struct troupe_loader *loader,
                                   const struct troupe_json_path *path, const json_t *ranks)
{
    struct troupe_sections *sections = loader->graph->sections;
    struct troupe_job *job = &sections->jobs[sections->job_count++];

    job->name = troupe_strdup(path->key);
    job->ranks = troupe_calloc(json_array_size(ranks) + 1, sizeof(*job->ranks));
    if (job->name == NULL || job->ranks == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    if (json_array_size(ranks) == 0) {
        troupe_loader_error(loader, path, false,
                            "cluster: job \"%s\" wants a list of ranks, such as [0, 1]", path->key);
        return TROUPE_OK;
    }
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const struct troupe_json_path at = {path, NULL, i};
        const json_t *rank = json_array_get(ranks, i);

        if (json_is_integer(rank) && json_integer_value(rank) >= 0 &&
            json_integer_value(rank) < RANKS_MAX)
            job->ranks[job->rank_count++] = (int)json_integer_value(rank);
        else
            troupe_loader_error(loader, &at, false,
                                "cluster: job \"%s\" wants ranks, each an int from 0", path->key);
    }
    return TROUPE_OK;
}

static enum troupe_status load_cluster(struct troupe_loader *loader, json_t *root)
{
    const struct troupe_json_path path = {NULL, "cluster", 0};
    json_t *cluster = json_object_get(root, "cluster"), *value;
    struct troupe_sections *sections = loader->graph->sections;
    enum troupe_status status = TROUPE_OK;
    const char *key;

    if (cluster == NULL)
        return TROUPE_OK;
    if (!json_is_object(cluster)) {
        troupe_loader_error(loader, &path, false,
                            "\"cluster\" wants an object of jobs and their ranks, such as "
                            "{\"ps\": [0], \"worker\": [1, 2]}");
        return TROUPE_OK;
    }
    sections->jobs = troupe_calloc(json_object_size(cluster) + 1, sizeof(*sections->jobs));
    if (sections->jobs == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    json_object_foreach(cluster, key, value)
    {
        const struct troupe_json_path at = {&path, key, 0};

        if (status == TROUPE_OK)
            status = load_job(loader, &at, value);
    }
    return status;
}

enum troupe_status troupe_load_sections(struct troupe_loader *loader, json_t *root)
{
    struct section section = {loader, NULL, "", TROUPE_OK};
    enum troupe_status status;

    loader->graph->sections = troupe_calloc(1, sizeof(*loader->graph->sections));
    if (loader->graph->sections == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    (void)read_string(&section, root, "strategy", false, true, &loader->graph->sections->strategy);
    status = section.status;
    if (status == TROUPE_OK)
        status = load_train(loader, root);
    if (status == TROUPE_OK)
        status = load_loops(loader, root);
    if (status == TROUPE_OK)
        status = load_cluster(loader, root);
    return status;
}
