/* Jobs and tasks: the `cluster` section, or one job "worker" of all ranks. */
#include <string.h>

#include "graph/graph.h"
#include "graph/sections.h"

static const struct troupe_job *worker_job(const struct troupe_graph *graph)
{
    for (int i = 0; graph->sections && i < graph->sections->job_count; i++)
        if (strcmp(graph->sections->jobs[i].name, "worker") == 0)
            return &graph->sections->jobs[i];
    return NULL;
}

int troupe_graph_worker_count(const struct troupe_graph *graph, int ranks)
{
    if (!graph->sections || graph->sections->job_count == 0)
        return ranks;
    const struct troupe_job *job = worker_job(graph);
    return job ? job->rank_count : 0;
}

int troupe_graph_worker_rank(const struct troupe_graph *graph, int task)
{
    const struct troupe_job *job = worker_job(graph);
    return job ? job->ranks[task] : task;
}
