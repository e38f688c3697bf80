/* The loops of a graph, in the order in which they run. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/session.h"
#include "graph/sections.h"

/* Steps of a training graph that has no `loop` section. */
#define TROUPE_DEFAULT_STEPS 100

static enum troupe_status copy_values(const struct troupe_named_value *from, int count,
                                      const struct troupe_loop_value **out)
{
    struct troupe_loop_value *values = troupe_calloc((size_t)count + 1, sizeof(*values));
    if (!values)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++)
        values[i] = (struct troupe_loop_value){from[i].name, from[i].value};
    *out = values;
    return TROUPE_OK;
}

/* The examples in a step: the leading dimension of the value that the section names, summed over
 * the replicas of its node. */
static enum troupe_status count_examples(const struct troupe_graph *graph,
                                         const struct troupe_loop_section *section, int64_t *out)
{
    *out = 0;
    if (!section->examples)
        return TROUPE_OK;
    struct troupe_value value;
    enum troupe_status status = troupe_graph_value(graph, section->examples, &value);
    if (status != TROUPE_OK)
        return troupe_status_prefix(status, "loop \"%s\": examples: ", section->name);
    const char *origin = graph->nodes[value.node].origin;
    for (int i = 0; i < graph->node_count; i++) {
        const struct troupe_node *node = &graph->nodes[i];
        if (i != value.node && (node->replica < 0 || strcmp(node->origin, origin) != 0 ||
                                node->schema != graph->nodes[value.node].schema))
            continue;
        const struct troupe_shape *shape = &node->output_shapes[value.port];
        if (shape->rank > 0 && shape->dims[0] > 0)
            *out += shape->dims[0];
    }
    return TROUPE_OK;
}

static enum troupe_status make_loop(const struct troupe_graph *graph,
                                    const struct troupe_loop_section *section,
                                    struct troupe_loop *loop)
{
    loop->name = section->name;
    loop->with = section->with;
    loop->until = section->until;
    loop->timeout_ms = section->timeout_ms;
    loop->staleness = (int)section->staleness;
    loop->steps = section->steps;
    loop->every = section->every;
    loop->run_count = section->run_count;
    loop->show_count = section->show_count;
    loop->mean_count = section->mean_count;
    const char **run = troupe_calloc((size_t)section->run_count + 1, sizeof(*run));
    if (!run)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < section->run_count; i++)
        run[i] = section->run[i];
    loop->run = run;
    enum troupe_status status = copy_values(section->show, section->show_count, &loop->show);
    if (status == TROUPE_OK)
        status = copy_values(section->mean, section->mean_count, &loop->mean);
    if (status == TROUPE_OK)
        status = count_examples(graph, section, &loop->examples);
    return status;
}

static bool was_made(const struct troupe_session *session, const char *name)
{
    for (int i = 0; i < session->loop_count; i++)
        if (strcmp(session->loops[i].name, name) == 0)
            return true;
    return false;
}

/* Takes the sections whose `after` and `with` are made, in the order of the file, until none is
 * left. */
static enum troupe_status make_in_order(struct troupe_session *session,
                                        const struct troupe_sections *sections)
{
    while (session->loop_count < sections->loop_count) {
        int before = session->loop_count;
        for (int i = 0; i < sections->loop_count; i++) {
            const struct troupe_loop_section *section = &sections->loops[i];
            if (was_made(session, section->name) ||
                (section->after && !was_made(session, section->after)) ||
                (section->with && !was_made(session, section->with)))
                continue;
            enum troupe_status status =
                make_loop(session->graph, section, &session->loops[session->loop_count++]);
            if (status != TROUPE_OK)
                return status;
        }
        if (session->loop_count == before)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "%s: the loops' \"after\" and \"with\" name each other in a "
                                      "circle or a loop that does not exist",
                                      session->graph->path);
    }
    return TROUPE_OK;
}

/* One loop for a graph with `train` and no `loop`. */
static enum troupe_status make_default(struct troupe_session *session,
                                       const struct troupe_train_section *train)
{
    static const char *const target[] = {"train"};
    struct troupe_loop *loop = &session->loops[0];
    const char **run = troupe_calloc(1, sizeof(*run));
    struct troupe_loop_value *show = troupe_calloc(1, sizeof(*show));
    *loop = (struct troupe_loop){
        .name = target[0], .run = run, .steps = TROUPE_DEFAULT_STEPS, .show = show};
    session->loop_count = 1;
    if (!run || !show)
        return TROUPE_RESOURCE_EXHAUSTED;
    run[0] = target[0];
    show[0] = (struct troupe_loop_value){"loss", train->loss};
    loop->run_count = loop->show_count = 1;
    return TROUPE_OK;
}

enum troupe_status troupe_session_make_loops(struct troupe_session *session)
{
    const struct troupe_sections *sections = session->graph->sections;
    int count = sections ? sections->loop_count : 0;
    bool made_up = sections && count == 0 && sections->train;
    session->loops = troupe_calloc((size_t)count + 1, sizeof(*session->loops));
    if (!session->loops)
        return TROUPE_RESOURCE_EXHAUSTED;
    if (made_up)
        return make_default(session, sections->train);
    return count ? make_in_order(session, sections) : TROUPE_OK;
}

static void free_const(const void *memory)
{
    void *plain;
    memcpy(&plain, &memory, sizeof(plain));
    free(plain);
}

void troupe_session_free_loops(struct troupe_session *session)
{
    for (int i = 0; i < session->loop_count; i++) {
        free_const(session->loops[i].run);
        free_const(session->loops[i].show);
        free_const(session->loops[i].mean);
    }
    free(session->loops);
}

struct troupe_run troupe_loop_run(const struct troupe_loop *loop)
{
    return (struct troupe_run){.targets = loop->run,
                               .target_count = loop->run_count,
                               .steps = loop->steps,
                               .timeout_ms = loop->timeout_ms,
                               .until = loop->until,
                               .staleness = loop->staleness};
}

int troupe_session_loop_count(const struct troupe_session *session)
{
    return session->loop_count;
}

const struct troupe_loop *troupe_session_loop(const struct troupe_session *session, int index)
{
    return index >= 0 && index < session->loop_count ? &session->loops[index] : NULL;
}
