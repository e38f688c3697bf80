/* Taking a census, sending it, and judging those of all ranks.
 *
 * Why no deadlock is found where there is none: a firing happens when a task runs, and a task is
 * made by a firing, by a message or from outside. Between two censuses with equal activity nothing
 * fired; in each all workers slept with no task queued; nothing from outside is waited for. What is
 * left are messages: one that is sent and received completes a firing, and is seen here, because
 * its sender has begun, its receiver has begun, and its receiver has not completed. */
#include "coordinator/census.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "coordinator/wire.h"

/* Lines of each kind that one rank adds to a report. */
#define TROUPE_CENSUS_LINES 6
/* How often, and after what time, it looks again whether the workers sleep. */
#define TROUPE_CENSUS_NAPS   20
#define TROUPE_CENSUS_NAP_NS 500000

/* A census of one run while it is taken. */
struct taker {
    struct troupe_census *census;
    struct troupe_census_run *run;
    const struct troupe_request *request;
    const struct troupe_plan *plan;
    bool with_details, is_self_contained, failed;
    struct troupe_text *causes, *waits;
    int cause_lines, wait_lines;
};

/* By tag, then by iteration. */
static int compare_begun(const void *a, const void *b)
{
    const struct troupe_census_begun *x = a, *y = b;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->iteration < y->iteration ? -1 : x->iteration > y->iteration;
}

/* What is begun is looked up by the thousand. */
static void sort_begun(struct troupe_census_run *run)
{
    if (run->begun_count > 0)
        qsort(run->begun, (size_t)run->begun_count, sizeof(*run->begun), compare_begun);
}

static void *grow(void *array, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 64;
    return troupe_reallocarray(array, (size_t)*capacity, size);
}

static void add_begun(struct taker *taker, uint64_t tag, uint64_t iteration)
{
    struct troupe_census_run *run = taker->run;
    struct troupe_census_begun *grown =
        grow(run->begun, run->begun_count, &run->begun_capacity, sizeof(*grown));
    if (!grown) {
        taker->failed = true;
        return;
    }
    run->begun = grown;
    run->begun[run->begun_count++] = (struct troupe_census_begun){tag, iteration};
}

static void add_wait(struct taker *taker, uint64_t tag, uint64_t iteration, uint64_t wanted)
{
    struct troupe_census_run *run = taker->run;
    struct troupe_census_wait *grown =
        grow(run->waits, run->wait_count, &run->wait_capacity, sizeof(*grown));
    if (!grown) {
        taker->failed = true;
        return;
    }
    run->waits = grown;
    run->waits[run->wait_count++] = (struct troupe_census_wait){tag, iteration, wanted};
}

static uint64_t group_size(const struct troupe_plan_part *part)
{
    const struct troupe_node *node = &part->plan->session->graph->nodes[part->node];
    return troupe_attr_find(node->attrs, node->attr_count, "group")->count;
}

/* Says what an actor that has begun waits for. */
static void describe(struct taker *taker, const struct troupe_plan_part *part, uint64_t iteration)
{
    const struct troupe_graph *graph = part->plan->session->graph;
    int rank = taker->request->runtime->transport->rank;
    unsigned long long step = iteration - taker->request->first;
    char text[TROUPE_NODE_TEXT_MAX];
    const char *node =
        part->node >= 0 ? troupe_node_describe(graph, part->node, text) : "the fetch";
    if (part->role == TROUPE_PART_RECEIVE) {
        if (iteration == taker->run->completed && taker->wait_lines++ < TROUPE_CENSUS_LINES)
            troupe_text_addf(taker->waits, "; rank %d waits in step %llu for %s of rank %d", rank,
                             step, node, part->peer);
    } else if (part->role != TROUPE_PART_SEND && taker->cause_lines++ < TROUPE_CENSUS_LINES) {
        troupe_text_addf(taker->causes, "; %s on rank %d has all its inputs in step %llu and %s",
                         node, rank, step,
                         part->role == TROUPE_PART_COLLECTIVE ? "waits for its other ranks"
                                                              : "does not complete");
    }
}

static void visit_begun(void *context, void *actor_context, uint64_t iteration, bool is_complete)
{
    struct taker *taker = context;
    const struct troupe_plan_part *part = actor_context;
    if (!part) { /* a frame: who knows what is waited for inside */
        taker->census->has_outside |= !is_complete;
        return;
    }
    if (!is_complete && part->role == TROUPE_PART_LOCAL)
        taker->census->has_outside |= !(taker->is_self_contained && part->blocks);
    if (!taker->with_details)
        return;
    if (part->role == TROUPE_PART_SEND || part->role == TROUPE_PART_COLLECTIVE)
        add_begun(taker, (uint64_t)part->tag, iteration);
    if (is_complete)
        return;
    if (part->role == TROUPE_PART_RECEIVE)
        add_wait(taker, (uint64_t)part->tag, iteration, 1);
    else if (part->role == TROUPE_PART_COLLECTIVE)
        add_wait(taker, (uint64_t)part->tag, iteration, group_size(part) - 1);
    describe(taker, part, iteration);
}

/* The lines of a stage's own description that say who waits for what inside of this rank; there
 * iterations are counted since the cast, here steps. */
static void describe_inside(struct taker *taker)
{
    static const char waits[] = " waits in iteration ";
    char *text = troupe_stage_describe_stall(taker->plan->stage, TROUPE_CENSUS_LINES), *rest = NULL;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *at = strstr(line, waits), *end;
        if (!at)
            continue;
        uint64_t iteration = strtoull(at + strlen(waits), &end, 10);
        *at = '\0';
        troupe_text_addf(taker->waits, "; on rank %d %s waits in step %llu%s",
                         taker->request->runtime->transport->rank, line,
                         (unsigned long long)(iteration - taker->request->first), end);
    }
    free(text);
}

static void take_run_locked(struct taker *taker)
{
    struct troupe_stage *stage = taker->plan->stage;
    struct troupe_census_run *run = taker->run;
    run->number = taker->request->number;
    run->phase = taker->request->failure.is_set + taker->request->has_end;
    /* While the program lends no thread, time does not count. */
    run->activity = troupe_pool_is_staffed(taker->request->runtime->pool)
                        ? troupe_stage_activity(stage)
                        : troupe_clock_ns();
    run->completed = troupe_stage_completed(stage);
    run->admitted = troupe_stage_admitted(stage);
    for (int i = 0; taker->with_details && i < taker->plan->part_count; i++) {
        const struct troupe_plan_part *part = taker->plan->parts[i];
        if (part->role == TROUPE_PART_SEND || part->role == TROUPE_PART_COLLECTIVE)
            add_begun(taker, (uint64_t)part->tag, TROUPE_CENSUS_ALL_BEFORE);
    }
    if (!troupe_stage_each_begun(stage, visit_begun, taker))
        taker->failed = true;
    sort_begun(run);
    if (taker->with_details && run->completed < run->admitted)
        describe_inside(taker);
}

static enum troupe_status take_runs(struct taker *taker, struct troupe_request *const *requests,
                                    int count)
{
    struct troupe_census *census = taker->census;
    census->runs = troupe_calloc((size_t)count + 1, sizeof(*census->runs));
    if (!census->runs)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && !taker->failed; i++) {
        taker->request = requests[i];
        /* While it is not settled the plan is its own, and stays. */
        pthread_mutex_lock(&requests[i]->lock);
        taker->plan = requests[i]->plan;
        if (taker->plan) {
            taker->run = &census->runs[census->run_count++];
            take_run_locked(taker);
        }
        pthread_mutex_unlock(&requests[i]->lock);
    }
    return taker->failed ? TROUPE_RESOURCE_EXHAUSTED : TROUPE_OK;
}

/* Whether all workers sleep. The probe itself has woken one: it gets some time to lie down again.
 */
static bool is_idle(const struct troupe_runtime *runtime)
{
    static const struct timespec nap = {.tv_nsec = TROUPE_CENSUS_NAP_NS};
    for (int i = 0; i < TROUPE_CENSUS_NAPS; i++) {
        if (troupe_pool_is_idle(runtime->pool))
            return troupe_pool_is_staffed(runtime->pool);
        (void)nanosleep(&nap, NULL);
    }
    return false;
}

enum troupe_status troupe_census_take(struct troupe_session *session, bool with_details,
                                      bool is_self_contained, struct troupe_census *out)
{
    struct troupe_request **requests;
    int count;
    enum troupe_status status = troupe_session_requests(session, &requests, &count);
    if (status != TROUPE_OK)
        return status;
    struct troupe_text causes, waits;
    troupe_text_init(&causes);
    troupe_text_init(&waits);
    *out =
        (struct troupe_census){.has_details = with_details, .is_idle = is_idle(session->runtime)};
    struct taker taker = {.census = out,
                          .with_details = with_details,
                          .is_self_contained = is_self_contained,
                          .causes = &causes,
                          .waits = &waits};
    status = take_runs(&taker, requests, count);
    for (int i = 0; i < count; i++)
        troupe_request_unref(requests[i]);
    free(requests);
    out->causes = troupe_text_take(&causes);
    out->waits = troupe_text_take(&waits);
    troupe_text_fini(&causes);
    troupe_text_fini(&waits);
    if (status == TROUPE_OK && out->causes && out->waits)
        return TROUPE_OK;
    troupe_census_fini(out);
    return TROUPE_RESOURCE_EXHAUSTED;
}

void troupe_census_fini(struct troupe_census *census)
{
    for (int i = 0; i < census->run_count; i++) {
        free(census->runs[i].begun);
        free(census->runs[i].waits);
    }
    free(census->runs);
    free(census->causes);
    free(census->waits);
    *census = (struct troupe_census){0};
}

/* ---- On the wire ---- */

static void put_run(struct troupe_text *out, const struct troupe_census_run *run)
{
    troupe_wire_put_u64(out, run->number);
    troupe_wire_put_u64(out, run->activity);
    troupe_wire_put_u64(out, run->completed);
    troupe_wire_put_u64(out, run->admitted);
    troupe_wire_put_u64(out, run->phase);
    troupe_wire_put_u64(out, (uint64_t)run->begun_count);
    for (int i = 0; i < run->begun_count; i++) {
        troupe_wire_put_u64(out, run->begun[i].tag);
        troupe_wire_put_u64(out, run->begun[i].iteration);
    }
    troupe_wire_put_u64(out, (uint64_t)run->wait_count);
    for (int i = 0; i < run->wait_count; i++) {
        troupe_wire_put_u64(out, run->waits[i].tag);
        troupe_wire_put_u64(out, run->waits[i].iteration);
        troupe_wire_put_u64(out, run->waits[i].wanted);
    }
}

void troupe_census_put(struct troupe_text *out, const struct troupe_census *census)
{
    troupe_wire_put_u64(out, census->round);
    troupe_wire_put_u64(out, census->has_details);
    troupe_wire_put_u64(out, census->is_idle);
    troupe_wire_put_u64(out, census->has_outside);
    troupe_wire_put_u64(out, (uint64_t)census->run_count);
    for (int i = 0; i < census->run_count; i++)
        put_run(out, &census->runs[i]);
    troupe_wire_put_string(out, census->causes);
    troupe_wire_put_string(out, census->waits);
}

/* A count of things that take `bytes` bytes each; 0, and the reader has failed, when so many are
 * not there. */
static int get_count(struct troupe_wire_reader *reader, size_t bytes)
{
    uint64_t count = troupe_wire_get_u64(reader);
    if (reader->failed || count > (reader->bytes - reader->position) / bytes || count > INT32_MAX) {
        reader->failed = true;
        return 0;
    }
    return (int)count;
}

static enum troupe_status get_run(struct troupe_wire_reader *reader, struct troupe_census_run *run)
{
    run->number = troupe_wire_get_u64(reader);
    run->activity = troupe_wire_get_u64(reader);
    run->completed = troupe_wire_get_u64(reader);
    run->admitted = troupe_wire_get_u64(reader);
    run->phase = troupe_wire_get_u64(reader);
    int begun = get_count(reader, 2 * sizeof(uint64_t));
    run->begun = troupe_calloc((size_t)begun + 1, sizeof(*run->begun));
    for (; run->begun && run->begun_count < begun; run->begun_count++) {
        run->begun[run->begun_count].tag = troupe_wire_get_u64(reader);
        run->begun[run->begun_count].iteration = troupe_wire_get_u64(reader);
    }
    sort_begun(run);
    int waits = get_count(reader, 3 * sizeof(uint64_t));
    run->waits = troupe_calloc((size_t)waits + 1, sizeof(*run->waits));
    for (; run->waits && run->wait_count < waits; run->wait_count++) {
        run->waits[run->wait_count].tag = troupe_wire_get_u64(reader);
        run->waits[run->wait_count].iteration = troupe_wire_get_u64(reader);
        run->waits[run->wait_count].wanted = troupe_wire_get_u64(reader);
    }
    return run->begun && run->waits ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

enum troupe_status troupe_census_read(const void *data, size_t bytes, struct troupe_census *out)
{
    struct troupe_wire_reader reader;
    enum troupe_status status = TROUPE_OK;
    troupe_wire_reader_init(&reader, data, bytes);
    *out = (struct troupe_census){.round = troupe_wire_get_u64(&reader)};
    out->has_details = troupe_wire_get_u64(&reader) != 0;
    out->is_idle = troupe_wire_get_u64(&reader) != 0;
    out->has_outside = troupe_wire_get_u64(&reader) != 0;
    int runs = get_count(&reader, 7 * sizeof(uint64_t));
    out->runs = troupe_calloc((size_t)runs + 1, sizeof(*out->runs));
    for (; out->runs && status == TROUPE_OK && out->run_count < runs; out->run_count++)
        status = get_run(&reader, &out->runs[out->run_count]);
    out->causes = troupe_wire_get_string(&reader);
    out->waits = troupe_wire_get_string(&reader);
    if (!out->runs || !out->causes || !out->waits)
        status = TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK)
        status = troupe_wire_close(&reader, "census");
    if (status != TROUPE_OK)
        troupe_census_fini(out);
    return status;
}

/* ---- Judging ---- */

static const struct troupe_census_run *find_run(const struct troupe_census *census, uint64_t number)
{
    for (int i = 0; i < census->run_count; i++)
        if (census->runs[i].number == number)
            return &census->runs[i];
    return NULL;
}

uint64_t troupe_census_activity(const struct troupe_census *censuses, int ranks, uint64_t number)
{
    uint64_t hash = TROUPE_HASH_START;
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < censuses[rank].run_count; i++) {
            const struct troupe_census_run *run = &censuses[rank].runs[i];
            if (number == 0 || run->number == number)
                hash = troupe_hash_u64(troupe_hash_u64(hash, run->number), run->activity);
        }
    return hash;
}

bool troupe_census_is_quiet(const struct troupe_census *censuses, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        if (!censuses[rank].is_idle || censuses[rank].has_outside)
            return false;
    return true;
}

static bool find_begun(const struct troupe_census_run *run, uint64_t tag, uint64_t iteration)
{
    const struct troupe_census_begun wanted = {tag, iteration};
    return run->begun_count > 0 && bsearch(&wanted, run->begun, (size_t)run->begun_count,
                                           sizeof(wanted), compare_begun) != NULL;
}

static bool has_begun(const struct troupe_census_run *run, uint64_t tag, uint64_t iteration)
{
    return find_begun(run, tag, iteration) ||
           (iteration < run->completed && find_begun(run, tag, TROUPE_CENSUS_ALL_BEFORE));
}

static bool is_on_its_way(const struct troupe_census *censuses, int ranks, int waiting,
                          uint64_t number, const struct troupe_census_wait *wait)
{
    uint64_t begun = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const struct troupe_census_run *run = find_run(&censuses[rank], number);
        if (rank != waiting && run && has_begun(run, wait->tag, wait->iteration))
            begun++;
    }
    return begun >= wait->wanted;
}

/* Whether one run has something in flight, on some rank, that will not complete. A run whose ranks
 * are not in the same phase, or are stopping, is about to change. */
static bool is_stuck(const struct troupe_census *censuses, int ranks, uint64_t number)
{
    const struct troupe_census_run *first = find_run(&censuses[0], number);
    bool is_in_flight = false;
    for (int rank = 0; rank < ranks; rank++) {
        const struct troupe_census_run *run = find_run(&censuses[rank], number);
        if (!run || run->phase != first->phase || run->phase == 1)
            return false;
        is_in_flight |= run->completed < run->admitted;
        for (int i = 0; i < run->wait_count; i++)
            if (is_on_its_way(censuses, ranks, rank, number, &run->waits[i]))
                return false;
    }
    return is_in_flight; /* else the ranks are ending it */
}

bool troupe_census_is_deadlock(const struct troupe_census *censuses, int ranks)
{
    int runs = censuses[0].run_count;
    for (int rank = 1; rank < ranks; rank++)
        if (censuses[rank].run_count != runs)
            return false; /* one is about to begin or to end */
    for (int i = 0; i < runs; i++)
        if (!is_stuck(censuses, ranks, censuses[0].runs[i].number))
            return false;
    return runs > 0;
}
