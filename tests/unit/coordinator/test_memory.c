/* Memory stays flat: 20,000 more steps of a training graph on two ranks hold no more than the first
 * 2,000. A plain program: its ranks are threads. */
#include <malloc.h>
#include <stdio.h>

#include "base/memory.h"
#include "ranks.h"

#define WARM_STEPS 2000
#define STEPS      20000
/* What timing may leave in caches and mailboxes. */
#define SLACK_BYTES (256 * 1024)

/* y = mean((x w)^2) over two replicas, x being random. */
static const char training[] =
    "{\"node\": ["
    "{\"name\": \"shape\", \"op\": \"Const\", \"attr\": {\"dtype\": \"int32\", \"value\": [8, "
    "16]}},"
    "{\"name\": \"x\", \"op\": \"RandomUniform\", \"input\": [\"shape\"],"
    " \"attr\": {\"dtype\": \"float32\"}},"
    "{\"name\": \"w_shape\", \"op\": \"Const\", \"attr\": {\"dtype\": \"int32\", \"value\": [16, "
    "4]}},"
    "{\"name\": \"w0\", \"op\": \"RandomUniform\", \"input\": [\"w_shape\"],"
    " \"attr\": {\"dtype\": \"float32\"}},"
    "{\"name\": \"w\", \"op\": \"Variable\", \"attr\": {\"dtype\": \"float32\", \"shape\": [16, 4],"
    " \"initializer\": \"w0\"}},"
    "{\"name\": \"y\", \"op\": \"MatMul\", \"input\": [\"x\", \"w\"]},"
    "{\"name\": \"square\", \"op\": \"Square\", \"input\": [\"y\"]},"
    "{\"name\": \"axes\", \"op\": \"Const\", \"attr\": {\"dtype\": \"int32\", \"value\": [0, 1]}},"
    "{\"name\": \"loss\", \"op\": \"Mean\", \"input\": [\"square\", \"axes\"]}],"
    "\"train\": {\"loss\": \"loss\", \"optimizer\": {\"type\": \"Adam\"}}}";

static size_t bytes_in_use(void)
{
    struct troupe_memory_usage usage;
    troupe_memory_usage_get(&usage);
    return mallinfo2().uordblks + mallinfo2().hblkhd + (size_t)usage.live_bytes;
}

static void train(struct troupe_session *session, int64_t steps)
{
    const char *target = "train", *fetch = "loss";
    struct troupe_run run = {
        .targets = &target, .target_count = 1, .fetches = &fetch, .fetch_count = 1, .steps = steps};
    struct troupe_tensor *loss;
    int64_t done;
    CHECK(troupe_session_run(session, &run, &loss, &done) == TROUPE_OK);
    CHECK(done == steps);
    troupe_tensor_unref(loss);
}

static void stays_flat(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    train(session, WARM_STEPS);
    size_t before = bytes_in_use();
    train(session, STEPS);
    size_t after = bytes_in_use();
    printf("%zu bytes in use after %d steps, %zu after %d more\n", before, WARM_STEPS, after,
           STEPS);
    CHECK(after <= before + SLACK_BYTES);
}

int main(void)
{
    ranks_run(1, 2, training, NULL, false, stays_flat);
    ranks_run(2, 1, training, "data-parallel", false, stays_flat);
    return 0;
}
