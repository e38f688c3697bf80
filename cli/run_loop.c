/* `troupe run` of a graph with loops: each in its order, with progress, and one result.
 *
 * Loops run one after another, each together with those that name it in "with" (its companions);
 * these form a group, whose first loop leads. A companion without an end of its own ends when its
 * leader has; when one loop of a group fails the others are cancelled.
 *
 * Invariant: a loop's fetches are its show values and then its mean values; on_step gets them in
 * that order, step by step, and touches only the loop's state, which nobody else does meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* A loop while it runs. */
struct loop_state {
    const struct troupe_loop *loop;
    struct troupe_progress progress;
    const char **fetches;
    struct troupe_tensor **fetched; /* of the last step; NULL before */
    double *sums;                   /* of the mean values' elements */
    int64_t *counts;
    int fetch_count;
    int64_t steps; /* done */
    double seconds;
    int leader;                     /* of its group */
    struct troupe_request *request; /* NULL: not started, or over */
    bool was_ended;                 /* its leader was over */
};

static void loop_fini(struct loop_state *state)
{
    for (int i = 0; state->fetched != NULL && i < state->fetch_count; i++)
        troupe_tensor_unref(state->fetched[i]);
    troupe_request_free(state->request);
    free(state->fetched);
    free(state->fetches);
    free(state->sums);
    free(state->counts);
}

/* A value that the loop averages must be of a dtype that is read as a number. */
static enum troupe_status check_mean(const struct troupe_session *session,
                                     const struct troupe_loop *loop, int index)
{
    enum troupe_dtype dtype;
    int rank;
    int64_t dims[TROUPE_RANK_MAX];
    const char *value = loop->mean[index].value;

    enum troupe_status status = troupe_session_value(session, value, &dtype, &rank, dims);
    if (status != TROUPE_OK)
        return troupe_status_prefix(status, "loop \"%s\": mean \"%s\": ", loop->name,
                                    loop->mean[index].name);
    if (!troupe_is_number(dtype))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "loop \"%s\": mean \"%s\" is of %s, which has no mean; "
                                  "Cast it to float32",
                                  loop->name, loop->mean[index].name, troupe_dtype_name(dtype));
    return TROUPE_OK;
}

static enum troupe_status loop_init(struct loop_state *state, const struct troupe_session *session,
                                    const struct troupe_loop *loop)
{
    *state = (struct loop_state){.loop = loop, .fetch_count = loop->show_count + loop->mean_count};
    size_t room = (size_t)state->fetch_count + 1;

    for (int i = 0; i < loop->mean_count; i++) {
        enum troupe_status status = check_mean(session, loop, i);
        if (status != TROUPE_OK)
            return status;
    }
    state->fetches = calloc(room, sizeof *state->fetches);
    state->fetched = calloc(room, sizeof(struct troupe_tensor *));
    state->sums = calloc(room, sizeof *state->sums);
    state->counts = calloc(room, sizeof *state->counts);
    if (state->fetches == NULL || state->fetched == NULL || state->sums == NULL ||
        state->counts == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for loop \"%s\"",
                                  loop->name);
    for (int i = 0; i < loop->show_count; i++)
        state->fetches[i] = loop->show[i].value;
    for (int i = 0; i < loop->mean_count; i++)
        state->fetches[loop->show_count + i] = loop->mean[i].value;
    return TROUPE_OK;
}

static void on_step(void *context, int64_t step, struct troupe_tensor *const *fetched)
{
    struct loop_state *state = context;

    (void)step; /* counts from the session's first step or the run's: the loop counts itself */
    for (int i = 0; i < state->loop->mean_count; i++) {
        const struct troupe_tensor *value = fetched[state->loop->show_count + i];
        int64_t elements = troupe_tensor_elements(value);
        for (int64_t e = 0; e < elements; e++)
            state->sums[i] += troupe_tensor_number(value, e);
        state->counts[i] += elements;
    }
    state->steps++;
    troupe_progress_step(&state->progress, state->steps, fetched);
}

/* All loops of the graph, in order. */
struct loop_set {
    struct loop_state *states;
    int count;
    struct troupe_session *session;
    const struct troupe_arguments *arguments;
    int64_t next_step; /* the number of the next group's first step */
};

static enum troupe_status loop_start(const struct loop_set *set, struct loop_state *state)
{
    const struct troupe_arguments *arguments = set->arguments;
    const struct loop_state *leader = &set->states[state->leader];
    enum troupe_progress_mode mode = arguments->progress;
    struct troupe_run run = troupe_loop_run(state->loop);

    run.fetches = state->fetches;
    run.fetch_count = state->fetch_count;
    run.on_step = on_step;
    run.on_step_context = state;
    run.first_step = set->next_step;
    if (arguments->steps > 0 && state == &set->states[0])
        run.steps = arguments->steps;
    if (arguments->timeout_ms > 0)
        run.timeout_ms = arguments->timeout_ms;
    if (state != leader && leader->progress.in_place)
        mode = TROUPE_PROGRESS_NEVER; /* there is one line to rewrite */
    troupe_progress_start(&state->progress, mode, state->loop, run.steps);
    return troupe_session_start(set->session, &run, &state->request);
}

/* A loop is over: its values, or why it failed. */
static enum troupe_status loop_end(struct loop_state *state, int64_t *done)
{
    enum troupe_status status = troupe_request_wait(state->request, state->fetched, done);

    troupe_request_free(state->request);
    state->request = NULL;
    state->steps = *done;
    state->seconds = troupe_seconds() - state->progress.start;
    troupe_progress_end(&state->progress);
    if (state->was_ended && (status == TROUPE_CANCELLED || status == TROUPE_OUT_OF_RANGE))
        return TROUPE_OK; /* perhaps in the middle of a step, or before the first */
    return status;
}

/* The loops that run, as an array to wait for any of; their numbers in `members`. */
static int list_running(const struct loop_set *set, struct troupe_request **requests, int *members)
{
    int running = 0;

    for (int i = 0; i < set->count; i++)
        if (set->states[i].request != NULL) {
            requests[running] = set->states[i].request;
            members[running++] = i;
        }
    return running;
}

/* The leader is over: those that have no end of their own are, too. */
static void end_companions(struct loop_set *set)
{
    for (int i = 0; i < set->count; i++) {
        struct loop_state *state = &set->states[i];
        if (state->request == NULL || state->loop->steps > 0 || state->loop->until != NULL)
            continue;
        state->was_ended = true;
        troupe_request_cancel(state->request);
    }
}

static void cancel_all(struct loop_set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->states[i].request != NULL)
            troupe_request_cancel(set->states[i].request);
}

/* Nothing of what runs may outlive the states. */
static void end_all(struct loop_set *set)
{
    int64_t steps;

    cancel_all(set);
    for (int i = 0; i < set->count; i++)
        if (set->states[i].request != NULL)
            (void)(loop_end(&set->states[i], &steps) == TROUPE_OK);
}

/* Waits for every loop that runs. The first failure is the group's: `*done` is how many steps of
 * that loop were done. */
static enum troupe_status group_wait(struct loop_set *set, int leader, int64_t *done)
{
    struct troupe_request **requests = calloc((size_t)set->count, sizeof(struct troupe_request *));
    int *members = calloc((size_t)set->count, sizeof *members);
    enum troupe_status status = TROUPE_OK;
    char *message = NULL;
    int running, index = 0;

    if (requests == NULL || members == NULL)
        status = troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for loops");
    while (requests != NULL && members != NULL &&
           (running = list_running(set, requests, members)) > 0 &&
           troupe_request_wait_any(requests, running, &index) == TROUPE_OK) {
        int64_t steps = 0;
        enum troupe_status ended = loop_end(&set->states[members[index]], &steps);
        if (ended != TROUPE_OK && status == TROUPE_OK) {
            status = ended;
            *done = steps;
            message = strdup(troupe_status_message());
            cancel_all(set);
        }
        if (members[index] == leader)
            end_companions(set);
    }
    if (message != NULL)
        status = troupe_status_fail(status, "%s", message);
    free(message);
    free(requests);
    free(members);
    return status;
}

/* Runs the loops of a group. */
static enum troupe_status group_run(struct loop_set *set, int leader, int64_t *done)
{
    enum troupe_status status = TROUPE_OK;

    for (int i = leader; i < set->count && status == TROUPE_OK; i++)
        if (set->states[i].leader == leader)
            status = loop_start(set, &set->states[i]);
    if (status == TROUPE_OK)
        status = group_wait(set, leader, done);
    set->next_step += set->states[leader].steps;
    return status;
}

/* Who leads the group of each loop. Loops come after those that they name. */
static void find_leaders(const struct loop_set *set)
{
    for (int i = 0; i < set->count; i++) {
        struct loop_state *state = &set->states[i];
        state->leader = i;
        for (int k = 0; k < i && state->loop->with != NULL; k++)
            if (strcmp(set->states[k].loop->name, state->loop->with) == 0)
                state->leader = set->states[k].leader;
    }
}

/* The facts of the run: they come first, so that a value of the same name gets its loop's name. */
static enum troupe_status add_facts(struct troupe_result *result, struct troupe_runtime *runtime,
                                    const struct troupe_session *session,
                                    const struct loop_state *first, double seconds)
{
    double rate = (double)first->loop->examples * (double)first->steps;
    enum troupe_status status = troupe_result_add_integer(result, "steps", (uint64_t)first->steps);

    if (status == TROUPE_OK && first->loop->examples > 0)
        status = troupe_result_add_number(result, "examples_per_second", rate / first->seconds);
    if (status == TROUPE_OK)
        status = troupe_result_add_number(result, "seconds", seconds);
    if (status == TROUPE_OK)
        status = troupe_result_add_integer(result, "ranks", (uint64_t)troupe_runtime_size(runtime));
    if (status == TROUPE_OK)
        status =
            troupe_result_add_integer(result, "workers", (uint64_t)troupe_runtime_workers(runtime));
    if (status == TROUPE_OK)
        status = troupe_result_add_string(result, "strategy", troupe_session_strategy(session));
    if (status == TROUPE_OK)
        status = troupe_result_add_integer(result, "seed", troupe_session_seed(session));
    return status;
}

static enum troupe_status add_loop(struct troupe_result *result, const struct loop_state *state)
{
    const struct troupe_loop *loop = state->loop;
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; status == TROUPE_OK && i < loop->show_count; i++)
        status =
            troupe_result_add_tensor(result, loop->name, loop->show[i].name, state->fetched[i]);
    for (int i = 0; status == TROUPE_OK && i < loop->mean_count; i++) {
        if (state->counts[i] == 0) /* it was ended before its first step */
            continue;
        double mean = state->sums[i] / (double)state->counts[i];
        status = troupe_result_add_number(result, loop->mean[i].name, mean);
    }
    return status;
}

static enum troupe_status write_result(struct troupe_runtime *runtime,
                                       const struct troupe_session *session,
                                       const struct loop_state *states, int count, double seconds)
{
    struct troupe_result result;
    enum troupe_status status = troupe_result_init(&result);

    if (status != TROUPE_OK)
        return status;
    status = add_facts(&result, runtime, session, &states[0], seconds);
    for (int i = 0; status == TROUPE_OK && i < count; i++)
        status = add_loop(&result, &states[i]);
    if (status == TROUPE_OK)
        status = troupe_result_write(&result);
    troupe_result_fini(&result);
    return status;
}

int troupe_run_loops(struct troupe_runtime *runtime, struct troupe_session *session,
                     const struct troupe_arguments *arguments)
{
    struct loop_set set = {
        .count = troupe_session_loop_count(session), .session = session, .arguments = arguments};
    int exit_status = TROUPE_EXIT_DONE;
    double start = troupe_seconds();
    enum troupe_status status = TROUPE_OK;

    set.states = calloc((size_t)set.count, sizeof *set.states);
    if (set.states == NULL)
        return troupe_fail(runtime,
                           troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for loops"));
    for (int i = 0; status == TROUPE_OK && i < set.count; i++)
        status = loop_init(&set.states[i], session, troupe_session_loop(session, i));
    if (status != TROUPE_OK) {
        exit_status = troupe_fail(runtime, status);
        goto free_states;
    }
    find_leaders(&set);
    for (int i = 0; i < set.count; i++) {
        int64_t done = 0;
        if (set.states[i].leader != i)
            continue;
        status = group_run(&set, i, &done);
        if (status != TROUPE_OK) {
            exit_status = troupe_run_failed(runtime, status, done);
            goto free_states;
        }
    }
    status = write_result(runtime, session, set.states, set.count, troupe_seconds() - start);
    if (status != TROUPE_OK)
        exit_status = troupe_fail(runtime, status);

free_states:
    end_all(&set);
    for (int i = 0; i < set.count; i++)
        loop_fini(&set.states[i]);
    free(set.states);
    return exit_status;
}
