/* Placement. Invariant: nodes of one group (found by union-find over what names state) get one
 * rank, which fits the constraints of all of them. */
#include "coordinator/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/accelerator.h"
#include "coordinator/partition.h"
#include "graph/sections.h"
#include "graph/splice.h"

struct placer {
    struct troupe_graph *graph;
    int ranks;
    const struct troupe_device_table *devices;
    const bool *keep;
    int *parent;                      /* union-find */
    struct troupe_device_spec *specs; /* of a group, at its root */
    int *named;                       /* of a group: a node that has a constraint, -1 */
    int *rank;                        /* of a group, -1: not yet */
    int *order;
};

static int find(struct placer *placer, int node)
{
    while (placer->parent[node] != node) {
        placer->parent[node] = placer->parent[placer->parent[node]];
        node = placer->parent[node];
    }
    return node;
}

/* ---- Constraints ---- */

static const struct troupe_job *find_job(const struct troupe_graph *graph, const char *name)
{
    for (int i = 0; graph->sections && i < graph->sections->job_count; i++)
        if (strcmp(graph->sections->jobs[i].name, name) == 0)
            return &graph->sections->jobs[i];
    return NULL;
}

static bool has_cluster(const struct troupe_graph *graph)
{
    return graph->sections && graph->sections->job_count > 0;
}

/* The tasks of a job, and the rank of one. */
static int task_count(const struct placer *placer, const char *job)
{
    if (!has_cluster(placer->graph))
        return strcmp(job, "worker") == 0 ? placer->ranks : 0;
    const struct troupe_job *found = find_job(placer->graph, job);
    return found ? found->rank_count : 0;
}

static int task_rank(const struct placer *placer, const char *job, int task)
{
    return has_cluster(placer->graph) ? find_job(placer->graph, job)->ranks[task] : task;
}

static enum troupe_status unsatisfiable(const struct placer *placer, int node, const char *why)
{
    char text[TROUPE_NODE_TEXT_MAX];
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s: device \"%s\": %s",
                              troupe_node_describe(placer->graph, node, text),
                              placer->graph->nodes[node].device, why);
}

/* The job with most tasks: what a task without a job may mean. */
static const char *longest_job(const struct placer *placer)
{
    const struct troupe_sections *sections = placer->graph->sections;
    const char *longest = "worker";
    for (int i = 0; has_cluster(placer->graph) && i < sections->job_count; i++)
        if (sections->jobs[i].rank_count > task_count(placer, longest))
            longest = sections->jobs[i].name;
    return longest;
}

/* A constraint alone: can it be met at all? */
static enum troupe_status check_spec(const struct placer *placer, int node,
                                     const struct troupe_device_spec *spec)
{
    const char *job = spec->job[0] ? spec->job : longest_job(placer);
    int tasks = task_count(placer, job);
    char why[256];
    if (!troupe_node_accelerate(placer->graph, node, spec, placer->devices, why, sizeof(why)))
        return unsatisfiable(placer, node, why);
    if (spec->job[0] && tasks == 0)
        snprintf(why, sizeof(why), "the cluster has no job \"%s\"", job);
    else if (spec->task >= tasks && tasks > 0)
        snprintf(why, sizeof(why), "the cluster has %s tasks 0 to %d", job, tasks - 1);
    else
        return TROUPE_OK;
    return unsatisfiable(placer, node, why);
}

static enum troupe_status read_constraints(struct placer *placer)
{
    for (int i = 0; i < placer->graph->node_count; i++) {
        const char *device = placer->graph->nodes[i].device;
        placer->parent[i] = i;
        placer->named[i] = device[0] ? i : -1;
        placer->rank[i] = -1;
        enum troupe_status status = troupe_device_spec_parse(device, &placer->specs[i]);
        if (status != TROUPE_OK) {
            char text[TROUPE_NODE_TEXT_MAX];
            return troupe_status_prefix(status,
                                        "%s: ", troupe_node_describe(placer->graph, i, text));
        }
        if (device[0] && placer->keep[i])
            status = check_spec(placer, i, &placer->specs[i]);
        if (status != TROUPE_OK)
            return status;
        /* Nodes of the same state are on one rank; the device is each node's own. */
        placer->specs[i].type[0] = '\0';
        placer->specs[i].index = -1;
    }
    return TROUPE_OK;
}

static enum troupe_status join(struct placer *placer, int a, int b)
{
    int first = find(placer, a), second = find(placer, b);
    if (first == second)
        return TROUPE_OK;
    struct troupe_device_spec merged;
    if (troupe_device_spec_merge(&placer->specs[first], &placer->specs[second], &merged) !=
        TROUPE_OK) {
        const struct troupe_graph *graph = placer->graph;
        int one = placer->named[first], other = placer->named[second];
        char text[TROUPE_NODE_TEXT_MAX], other_text[TROUPE_NODE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT,
            "%s has device \"%s\", and %s, which must be on the same, has \"%s\"",
            troupe_node_describe(graph, one, text), graph->nodes[one].device,
            troupe_node_describe(graph, other, other_text), graph->nodes[other].device);
    }
    placer->parent[second] = first;
    placer->specs[first] = merged;
    if (placer->named[first] < 0)
        placer->named[first] = placer->named[second];
    return TROUPE_OK;
}

/* Joins a node with the state that its input names: by a ref, or by a resource that it is handed.
 */
static enum troupe_status colocate_input(struct placer *placer, int node, int input)
{
    const struct troupe_graph *graph = placer->graph;
    struct troupe_value value = graph->nodes[node].inputs[input];
    if (troupe_node_input_is_ref(&graph->nodes[node], input))
        return join(placer, troupe_node_ref_owner(graph, node, input), node);
    if (graph->nodes[value.node].output_dtypes[value.port] == TROUPE_RESOURCE)
        return join(placer, value.node, node);
    return TROUPE_OK;
}

/* A function that calls itself is in one place with all its calls. */
static enum troupe_status colocate_functions(struct placer *placer)
{
    const struct troupe_graph *graph = placer->graph;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++) {
        const struct troupe_node *node = &graph->nodes[i];
        if (!placer->keep[i])
            continue;
        if (node->function > 0)
            status = join(placer, graph->library->functions[node->function - 1].first, i);
        const struct troupe_function *called = troupe_node_called(graph, node);
        if (called && status == TROUPE_OK)
            status = join(placer, called->first, i);
    }
    return status;
}

static enum troupe_status colocate(struct placer *placer)
{
    struct troupe_graph *graph = placer->graph;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < graph->node_count; i++)
        for (int j = 0; j < graph->nodes[i].input_count && status == TROUPE_OK; j++)
            if (placer->keep[i])
                status = colocate_input(placer, i, j);
    return status;
}

/* ---- Choice ---- */

static bool job_fits(const struct placer *placer, const struct troupe_device_spec *spec,
                     const char *job, int rank)
{
    int tasks = task_count(placer, job);
    for (int task = 0; task < tasks; task++)
        if ((spec->task < 0 || spec->task == task) && task_rank(placer, job, task) == rank)
            return true;
    return false;
}

static bool rank_fits(const struct placer *placer, const struct troupe_device_spec *spec, int rank)
{
    if (!spec->job[0] && spec->task < 0)
        return true;
    if (spec->job[0] || !has_cluster(placer->graph))
        return job_fits(placer, spec, spec->job[0] ? spec->job : "worker", rank);
    for (int i = 0; i < placer->graph->sections->job_count; i++)
        if (job_fits(placer, spec, placer->graph->sections->jobs[i].name, rank))
            return true;
    return false;
}

/* A group with a constraint that leaves no choice is placed before all others. */
static void place_constrained(struct placer *placer)
{
    for (int i = 0; i < placer->graph->node_count; i++) {
        const struct troupe_device_spec *spec = &placer->specs[i];
        if (placer->parent[i] != i || (!spec->job[0] && spec->task < 0))
            continue;
        int fitting = -1, count = 0;
        for (int rank = 0; rank < placer->ranks; rank++) {
            if (!rank_fits(placer, spec, rank))
                continue;
            fitting = fitting < 0 ? rank : fitting;
            count++;
        }
        if (count == 1)
            placer->rank[i] = fitting;
    }
}

/* Takes a neighbour's rank when it is known and fits. */
static void follow(struct placer *placer, int node, int neighbour)
{
    int group = find(placer, node), rank = placer->rank[find(placer, neighbour)];
    if (placer->rank[group] < 0 && rank >= 0 && rank_fits(placer, &placer->specs[group], rank))
        placer->rank[group] = rank;
}

static void follow_inputs(struct placer *placer, int number)
{
    const struct troupe_node *node = &placer->graph->nodes[number];
    for (int i = 0; i < node->input_count; i++)
        follow(placer, number, node->inputs[i].node);
}

static void lead_inputs(struct placer *placer, int number)
{
    const struct troupe_node *node = &placer->graph->nodes[number];
    for (int i = 0; i < node->input_count; i++)
        follow(placer, node->inputs[i].node, number);
}

static void place_rest(struct placer *placer)
{
    int count = placer->graph->node_count;
    for (int i = 0; i < count; i++)
        if (placer->keep[placer->order[i]])
            follow_inputs(placer, placer->order[i]);
    for (int i = count - 1; i >= 0; i--)
        if (placer->keep[placer->order[i]])
            lead_inputs(placer, placer->order[i]);
    for (int i = 0; i < count; i++) {
        int group = find(placer, i);
        for (int rank = 0; rank < placer->ranks && placer->rank[group] < 0; rank++)
            if (rank_fits(placer, &placer->specs[group], rank))
                placer->rank[group] = rank;
    }
}

static enum troupe_status check_cluster(const struct placer *placer)
{
    const struct troupe_graph *graph = placer->graph;
    for (int i = 0; graph->sections && i < graph->sections->job_count; i++) {
        const struct troupe_job *job = &graph->sections->jobs[i];
        for (int j = 0; j < job->rank_count; j++)
            if (job->ranks[j] < 0 || job->ranks[j] >= placer->ranks)
                return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                          "%s: cluster: job \"%s\" has rank %d: there are ranks 0 "
                                          "to %d",
                                          graph->path, job->name, job->ranks[j], placer->ranks - 1);
    }
    return TROUPE_OK;
}

static enum troupe_status place_all(struct placer *placer)
{
    struct troupe_graph *graph = placer->graph;
    enum troupe_status status = check_cluster(placer);
    if (status == TROUPE_OK)
        status = read_constraints(placer);
    if (status == TROUPE_OK)
        status = colocate(placer);
    if (status == TROUPE_OK)
        status = colocate_functions(placer);
    if (status == TROUPE_OK)
        status = troupe_graph_sort(graph, placer->order);
    if (status != TROUPE_OK)
        return status;
    place_constrained(placer);
    place_rest(placer);
    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++)
        if (placer->keep[i] && placer->rank[find(placer, i)] < 0)
            status = unsatisfiable(placer, i,
                                   "no rank has that and what the nodes of the same state want");
    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++)
        if (placer->keep[i])
            graph->nodes[i].rank = placer->rank[find(placer, i)];
    return status;
}

enum troupe_status troupe_place(struct troupe_graph *graph, int ranks,
                                const struct troupe_device_table *devices, const bool *keep)
{
    size_t count = (size_t)graph->node_count + 1;
    struct placer placer = {.graph = graph, .ranks = ranks, .devices = devices, .keep = keep};
    placer.parent = troupe_calloc(count, sizeof(int));
    placer.specs = troupe_calloc(count, sizeof(*placer.specs));
    placer.named = troupe_calloc(count, sizeof(int));
    placer.rank = troupe_calloc(count, sizeof(int));
    placer.order = troupe_calloc(count, sizeof(int));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (placer.parent && placer.specs && placer.named && placer.rank && placer.order)
        status = place_all(&placer);
    free(placer.parent);
    free(placer.specs);
    free(placer.named);
    free(placer.rank);
    free(placer.order);
    return status;
}
