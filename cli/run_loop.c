/* `troupe run` of a graph with loops: each in its order, with progress, and one result.
 *
 * Invariant: a loop's fetches are its show values and then its mean values; on_step gets them in
 * that order, step by step, and touches only the loop's state, which nobody else does meanwhile. */
#include <stdlib.h>

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
};

static void loop_fini(struct loop_state *state)
{
    for (int i = 0; state->fetched != NULL && i < state->fetch_count; i++)
        troupe_tensor_unref(state->fetched[i]);
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

static enum troupe_status loop_run(struct loop_state *state, struct troupe_session *session,
                                   int64_t steps, enum troupe_progress_mode mode, int64_t *done)
{
    struct troupe_run run = {
        .fetches = state->fetches,
        .fetch_count = state->fetch_count,
        .targets = state->loop->run,
        .target_count = state->loop->run_count,
        .steps = steps,
        .on_step = on_step,
        .on_step_context = state,
    };

    troupe_progress_start(&state->progress, mode, state->loop, steps);
    enum troupe_status status = troupe_session_run(session, &run, state->fetched, done);
    state->seconds = troupe_seconds() - state->progress.start;
    troupe_progress_end(&state->progress);
    return status;
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
    int count = troupe_session_loop_count(session), exit_status = TROUPE_EXIT_DONE;
    struct loop_state *states = calloc((size_t)count, sizeof *states);
    double start = troupe_seconds();
    enum troupe_status status = TROUPE_OK;

    if (states == NULL)
        return troupe_fail(runtime,
                           troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for loops"));
    for (int i = 0; status == TROUPE_OK && i < count; i++)
        status = loop_init(&states[i], session, troupe_session_loop(session, i));
    if (status != TROUPE_OK) {
        exit_status = troupe_fail(runtime, status);
        goto free_states;
    }
    for (int i = 0; i < count; i++) {
        int64_t steps = i == 0 && arguments->steps > 0 ? arguments->steps : states[i].loop->steps;
        int64_t done = 0;
        status = loop_run(&states[i], session, steps, arguments->progress, &done);
        if (status != TROUPE_OK) {
            exit_status = troupe_run_failed(runtime, status, done);
            goto free_states;
        }
    }
    status = write_result(runtime, session, states, count, troupe_seconds() - start);
    if (status != TROUPE_OK)
        exit_status = troupe_fail(runtime, status);

free_states:
    for (int i = 0; i < count; i++)
        loop_fini(&states[i]);
    free(states);
    return exit_status;
}
