/* Strategies by name. To add one, add its rewrite and its row. */
#include <string.h>

#include "base/text.h"
#include "graph/data_parallel.h"
#include "graph/sections.h"

struct strategy {
    const char *name;
    enum troupe_status (*rewrite)(struct troupe_graph *graph, int ranks);
};

static const struct strategy strategies[] = {
    {"data-parallel", troupe_graph_data_parallel},
};
#define STRATEGY_COUNT (sizeof(strategies) / sizeof(strategies[0]))

static enum troupe_status unknown(const char *spec)
{
    const char *names[STRATEGY_COUNT + 1] = {"none"};
    for (size_t i = 0; i < STRATEGY_COUNT; i++)
        names[i + 1] = strategies[i].name;
    const char *near = troupe_text_nearest(spec, names, STRATEGY_COUNT + 1);
    if (near)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "no strategy \"%s\" (did you mean \"%s\"?)", spec, near);
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "no strategy \"%s\": there are none and data-parallel", spec);
}

enum troupe_status troupe_graph_strategy(struct troupe_graph *graph, const char *spec, int ranks)
{
    for (size_t i = 0; i < STRATEGY_COUNT; i++) {
        if (strcmp(strategies[i].name, spec) != 0)
            continue;
        if (!graph->sections || !graph->sections->train)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "strategy \"%s\": %s has no \"train\" section to distribute",
                                      spec, graph->path);
        return strategies[i].rewrite(graph, ranks);
    }
    return unknown(spec);
}
