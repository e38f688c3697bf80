/* `troupe run`: opens a session on every rank; rank 0 feeds, runs and fetches, or runs the graph's
 * loops (run_loop.c); the others serve.
 *
 * Invariant: rank 0 closes the session on every path, which ends the others' serving. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* What --feed, --fetch and --target name, for one troupe_session_run. */
struct selection {
    char **feeds;
    struct troupe_tensor **feed_values;
    char **fetches;
    const char **files; /* of each fetch; NULL: printed */
    struct troupe_tensor **fetched;
    int feed_count, fetch_count;
};

static void selection_fini(struct selection *selection)
{
    for (int i = 0; selection->feeds != NULL && i < selection->feed_count; i++)
        free(selection->feeds[i]);
    for (int i = 0; selection->feed_values != NULL && i < selection->feed_count; i++)
        troupe_tensor_unref(selection->feed_values[i]);
    for (int i = 0; selection->fetches != NULL && i < selection->fetch_count; i++)
        free(selection->fetches[i]);
    for (int i = 0; selection->fetched != NULL && i < selection->fetch_count; i++)
        troupe_tensor_unref(selection->fetched[i]);
    free(selection->feeds);
    free(selection->feed_values);
    free(selection->fetches);
    free(selection->files);
    free(selection->fetched);
}

static enum troupe_status read_feed(const struct troupe_session *session, const char *name,
                                    const char *value, struct troupe_tensor **out)
{
    enum troupe_dtype dtype;
    int rank;
    int64_t dims[TROUPE_RANK_MAX];

    enum troupe_status status = troupe_session_value(session, name, &dtype, &rank, dims);
    if (status == TROUPE_OK)
        status = value[0] == '@' ? troupe_tensor_load(value + 1, out)
                                 : troupe_tensor_parse(value, dtype, out);
    if (status != TROUPE_OK)
        return troupe_status_prefix(status, "--feed \"%s\": ", name);
    return TROUPE_OK;
}

static enum troupe_status selection_init(struct selection *selection,
                                         const struct troupe_session *session,
                                         const struct troupe_arguments *arguments)
{
    size_t feeds = (size_t)arguments->feed_count + 1, fetches = (size_t)arguments->fetch_count + 1;

    *selection = (struct selection){.feed_count = arguments->feed_count,
                                    .fetch_count = arguments->fetch_count};
    selection->feeds = calloc(feeds, sizeof(char *));
    selection->feed_values = calloc(feeds, sizeof(struct troupe_tensor *));
    selection->fetches = calloc(fetches, sizeof(char *));
    selection->files = calloc(fetches, sizeof(char *));
    selection->fetched = calloc(fetches, sizeof(struct troupe_tensor *));
    if (selection->feeds == NULL || selection->feed_values == NULL || selection->fetches == NULL ||
        selection->files == NULL || selection->fetched == NULL)
        goto no_memory;
    for (int i = 0; i < arguments->fetch_count; i++) {
        const char *text = arguments->fetches[i];
        size_t name = strcspn(text, "=");
        selection->fetches[i] = strndup(text, name);
        selection->files[i] = text[name] == '=' ? text + name + 1 : NULL;
        if (selection->fetches[i] == NULL)
            goto no_memory;
    }
    for (int i = 0; i < arguments->feed_count; i++) {
        const char *text = arguments->feeds[i];
        size_t name = strcspn(text, "=");
        selection->feeds[i] = strndup(text, name);
        if (selection->feeds[i] == NULL)
            goto no_memory;
        enum troupe_status status =
            read_feed(session, selection->feeds[i], text + name + 1, &selection->feed_values[i]);
        if (status != TROUPE_OK)
            return status;
    }
    return TROUPE_OK;

no_memory:
    return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for feeds and fetches");
}

static enum troupe_status write_fetched(const struct selection *selection)
{
    struct troupe_result result;
    enum troupe_status status = troupe_result_init(&result);

    if (status != TROUPE_OK)
        return status;
    for (int i = 0; status == TROUPE_OK && i < selection->fetch_count; i++) {
        const char *file = selection->files[i];
        if (file == NULL) {
            status = troupe_result_add_tensor(&result, NULL, selection->fetches[i],
                                              selection->fetched[i]);
            continue;
        }
        status = troupe_tensor_save(selection->fetched[i], file);
        if (status == TROUPE_OK)
            status = troupe_result_add_string(&result, selection->fetches[i], file);
        else if (status == TROUPE_NOT_FOUND || status == TROUPE_PERMISSION_DENIED)
            status = TROUPE_UNAVAILABLE; /* a place that cannot be written is no wrong graph */
    }
    if (status == TROUPE_OK)
        status = troupe_result_write(&result);
    troupe_result_fini(&result);
    return status;
}

int troupe_run_failed(const struct troupe_runtime *runtime, enum troupe_status status, int64_t done)
{
    int caught = troupe_signals_caught();

    if (status != TROUPE_CANCELLED || caught == 0)
        return troupe_fail(runtime, status);
    fprintf(stderr, "troupe: interrupted at step %lld\n", (long long)done);
    return TROUPE_EXIT_SIGNAL + caught;
}

static int run_selection(struct troupe_runtime *runtime, struct troupe_session *session,
                         const struct troupe_arguments *arguments)
{
    struct selection selection;
    int64_t done = 0;
    int exit_status = TROUPE_EXIT_DONE;

    enum troupe_status status = selection_init(&selection, session, arguments);
    if (status != TROUPE_OK) {
        exit_status = troupe_fail(runtime, status);
        goto free_selection;
    }
    struct troupe_run run = {
        .feeds = (const char *const *)selection.feeds,
        .feed_values = selection.feed_values,
        .feed_count = selection.feed_count,
        .fetches = (const char *const *)selection.fetches,
        .fetch_count = selection.fetch_count,
        .targets = arguments->targets,
        .target_count = arguments->target_count,
        .steps = arguments->steps > 0 ? arguments->steps : 1,
        .timeout_ms = arguments->timeout_ms,
    };
    status = troupe_session_run(session, &run, selection.fetched, &done);
    if (status != TROUPE_OK) {
        exit_status = troupe_run_failed(runtime, status, done);
        goto free_selection;
    }
    status = write_fetched(&selection);
    if (status != TROUPE_OK)
        exit_status = troupe_fail(runtime, status);

free_selection:
    selection_fini(&selection);
    return exit_status;
}

/* What rank 0 does with an open session. */
static int lead(struct troupe_runtime *runtime, struct troupe_session *session,
                const struct troupe_arguments *arguments)
{
    if (arguments->fetch_count + arguments->target_count > 0)
        return run_selection(runtime, session, arguments);
    if (arguments->feed_count > 0)
        return troupe_fail(runtime,
                           troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                              "--feed without --fetch or --target: name what to "
                                              "run"));
    if (troupe_session_loop_count(session) == 0)
        return troupe_fail(runtime,
                           troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                              "%s has neither \"train\" nor \"loop\": name what to "
                                              "run with --fetch or --target",
                                              arguments->operand));
    return troupe_run_loops(runtime, session, arguments);
}

/* What every other rank does. */
static int follow(struct troupe_runtime *runtime, struct troupe_session *session)
{
    enum troupe_status status = troupe_session_serve(session);

    if (status == TROUPE_OK)
        return TROUPE_EXIT_DONE;
    if (troupe_signals_caught() != 0)
        return TROUPE_EXIT_SIGNAL + troupe_signals_caught();
    /* Rank 0 may be gone: this rank alone knows, and says so. */
    fprintf(stderr, "troupe: rank %d: %s\n", troupe_runtime_rank(runtime), troupe_status_message());
    troupe_runtime_abort(runtime, troupe_exit_status(status));
    return troupe_exit_status(status);
}

static int command_run(struct troupe_runtime *runtime, const struct troupe_arguments *arguments)
{
    /* Nothing but this command starts runs. */
    struct troupe_session_options options = {.seed = arguments->seed,
                                             .window = arguments->window,
                                             .strategy = arguments->strategy,
                                             .watchdog_ms = arguments->watchdog_ms,
                                             .self_contained = true};
    struct troupe_session *session;

    troupe_signals_install();
    enum troupe_status status =
        troupe_session_open(runtime, arguments->operand, &options, &session);
    if (status != TROUPE_OK)
        return troupe_load_failed(runtime, arguments->operand, status);
    troupe_signals_set_session(session);
    int exit_status = troupe_runtime_rank(runtime) == 0 ? lead(runtime, session, arguments)
                                                        : follow(runtime, session);
    troupe_signals_set_session(NULL);
    troupe_session_close(session);
    return exit_status;
}

const struct troupe_command troupe_command_run = {
    .name = "run",
    .operand = "GRAPH",
    .operand_required = true,
    .summary = "run a graph: its loops, or what --fetch and --target name",
    .accepts = 1u << TROUPE_OPTION_FEED | 1u << TROUPE_OPTION_FETCH | 1u << TROUPE_OPTION_TARGET |
               1u << TROUPE_OPTION_STEPS | 1u << TROUPE_OPTION_STRATEGY |
               1u << TROUPE_OPTION_WORKERS | 1u << TROUPE_OPTION_WINDOW | 1u << TROUPE_OPTION_SEED |
               1u << TROUPE_OPTION_TIMEOUT | 1u << TROUPE_OPTION_WATCHDOG |
               1u << TROUPE_OPTION_PROGRESS | 1u << TROUPE_OPTION_LOG | 1u << TROUPE_OPTION_SIM,
    .run = command_run,
};
