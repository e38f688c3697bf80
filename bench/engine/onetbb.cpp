/* oneTBB's flow graph as its manual builds dependence graphs: a continue_node fires when all its
 * predecessors have; what one hands to the next lies in memory that both know. */
#include <deque>
#include <vector>

#define TBB_PREVIEW_GLOBAL_CONTROL 1
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "bench/engine/peers.h"

namespace
{

using node_type = tbb::flow::continue_node<tbb::flow::continue_msg>;

struct onetbb {
    tbb::global_control control;
    tbb::task_arena arena;
    tbb::flow::graph *graph = nullptr;
    std::deque<node_type> nodes;
    std::vector<node_type *> sources;
    std::vector<const void *> values;

    explicit onetbb(int workers)
        : control(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(workers)),
          arena(workers)
    {
    }
};

void *onetbb_create(const troupe_bench_graph *graph, int workers, int64_t work_ns)
{
    auto *self = new onetbb(workers);

    self->arena.execute([&] {
        std::vector<int> first_producer(static_cast<size_t>(graph->node_count), -1);

        self->graph = new tbb::flow::graph;
        self->values.resize(static_cast<size_t>(graph->node_count));
        for (int i = 0; i < graph->edge_count; i++)
            if (graph->edges[i].to_port == 0)
                first_producer[static_cast<size_t>(graph->edges[i].to)] = graph->edges[i].from;
        for (int i = 0; i < graph->node_count; i++) {
            const void **value = &self->values[static_cast<size_t>(i)];
            int producer = first_producer[static_cast<size_t>(i)];
            const void **from =
                producer < 0 ? nullptr : &self->values[static_cast<size_t>(producer)];

            self->nodes.emplace_back(*self->graph, [=](const tbb::flow::continue_msg &message) {
                if (work_ns > 0)
                    troupe_bench_work(work_ns);
                *value = from ? *from : value;
                return message;
            });
            if (producer < 0)
                self->sources.push_back(&self->nodes.back());
        }
        for (int i = 0; i < graph->edge_count; i++)
            tbb::flow::make_edge(self->nodes[static_cast<size_t>(graph->edges[i].from)],
                                 self->nodes[static_cast<size_t>(graph->edges[i].to)]);
    });
    return self;
}

double onetbb_run(void *pointer)
{
    auto *self = static_cast<onetbb *>(pointer);
    double start = troupe_bench_now_ns();

    self->arena.execute([&] {
        for (node_type *source : self->sources)
            source->try_put(tbb::flow::continue_msg());
        self->graph->wait_for_all();
    });
    return troupe_bench_now_ns() - start;
}

void onetbb_destroy(void *pointer)
{
    auto *self = static_cast<onetbb *>(pointer);

    self->arena.execute([&] {
        self->nodes.clear();
        delete self->graph;
    });
    delete self;
}

} // namespace

extern "C" const peer peer_onetbb = {"onetbb", 64, onetbb_create, onetbb_run, onetbb_destroy};
