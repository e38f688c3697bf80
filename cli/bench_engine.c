/* The engine's benchmark, on the embedding API alone. */
#include "cli/bench_engine.h"

#include <stdlib.h>

#include "troupe/tensor.h"

/* What nodes with or without inputs and outputs do: the contexts of all actors. */
struct node_kind {
    bool has_inputs, has_outputs;
    int64_t work_ns;
};

struct troupe_bench_engine {
    struct troupe_pool *pool;
    struct troupe_stage *stage;
    struct node_kind kinds[2][2];
    uint64_t end;
};

static enum troupe_status make_scalar(struct troupe_payload **out)
{
    struct troupe_tensor *tensor;
    enum troupe_status status = troupe_tensor_create(TROUPE_FLOAT32, 0, NULL, &tensor);

    if (status == TROUPE_OK)
        *out = troupe_tensor_payload(tensor);
    return status;
}

static enum troupe_status pass_on(void *context, struct troupe_firing *firing)
{
    const struct node_kind *kind = context;
    enum troupe_status status = TROUPE_OK;

    if (kind->work_ns > 0)
        troupe_bench_work(kind->work_ns);
    if (kind->has_outputs && kind->has_inputs)
        troupe_firing_outputs(firing)[0] = troupe_firing_take_input(firing, 0);
    else if (kind->has_outputs)
        status = make_scalar(&troupe_firing_outputs(firing)[0]);
    return status;
}

static enum troupe_status describe(struct troupe_bench_engine *engine,
                                   const struct troupe_bench_graph *graph)
{
    enum troupe_status status = troupe_stage_create(1, &engine->stage);

    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++) {
        struct troupe_actor_spec spec = {.name = "node",
                                         .input_count = graph->inputs[i],
                                         .output_count = graph->outputs[i] > 0,
                                         .behave = pass_on};
        int number;

        spec.context = &engine->kinds[graph->inputs[i] > 0][graph->outputs[i] > 0];
        status = troupe_stage_add(engine->stage, &spec, &number);
    }
    for (int i = 0; i < graph->edge_count && status == TROUPE_OK; i++)
        status = troupe_stage_connect(engine->stage, graph->edges[i].from, 0, graph->edges[i].to,
                                      graph->edges[i].to_port, 0);
    if (status == TROUPE_OK)
        status = troupe_stage_cast(engine->stage, engine->pool);
    return status;
}

enum troupe_status troupe_bench_engine_create(const struct troupe_bench_graph *graph, int workers,
                                              int64_t work_ns, struct troupe_bench_engine **out)
{
    struct troupe_bench_engine *engine = calloc(1, sizeof *engine);
    enum troupe_status status;

    if (engine == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a benchmark");
    for (int i = 0; i < 4; i++)
        engine->kinds[i / 2][i % 2] = (struct node_kind){i / 2 == 1, i % 2 == 1, work_ns};
    status = troupe_pool_start(workers, &engine->pool);
    if (status == TROUPE_OK)
        status = describe(engine, graph);
    if (status != TROUPE_OK) {
        troupe_bench_engine_destroy(engine);
        return status;
    }
    *out = engine;
    return TROUPE_OK;
}

enum troupe_status troupe_bench_engine_run(struct troupe_bench_engine *engine, double *ns_out)
{
    double start = troupe_bench_now_ns();
    enum troupe_status status;

    troupe_stage_admit(engine->stage, ++engine->end);
    status = troupe_stage_wait(engine->stage, 0);
    *ns_out = troupe_bench_now_ns() - start;
    return status;
}

void troupe_bench_engine_destroy(struct troupe_bench_engine *engine)
{
    if (engine == NULL)
        return;
    troupe_stage_destroy(engine->stage);
    if (engine->pool != NULL)
        troupe_pool_stop(engine->pool);
    free(engine);
}
