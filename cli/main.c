/* The command `troupe`: reads the command line, starts the runtime, runs a subcommand.
 *
 * Invariant: every rank leaves through the end of main with a status that follows from the same
 * argv or from a status that all ranks share, so that none waits for another. Only rank 0
 * writes, results on standard output and all else on standard error. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "troupe/version.h"

const struct troupe_command *const troupe_commands[] = {&troupe_command_run,
                                                        &troupe_command_check,
                                                        &troupe_command_show,
                                                        &troupe_command_ops,
                                                        &troupe_command_info,
                                                        &troupe_command_bench,
                                                        NULL};

void troupe_complain(const char *message)
{
    while (*message != '\0') {
        int length = (int)strcspn(message, "\n");
        fprintf(stderr, "troupe: %.*s\n", length, message);
        message += length;
        message += *message == '\n';
    }
}

int troupe_exit_status(enum troupe_status status)
{
    switch (status) {
    case TROUPE_OK:
        return TROUPE_EXIT_DONE;
    case TROUPE_INVALID_ARGUMENT:
    case TROUPE_NOT_FOUND:
    case TROUPE_ALREADY_EXISTS:
    case TROUPE_PERMISSION_DENIED:
    case TROUPE_UNIMPLEMENTED:
    case TROUPE_DATA_LOSS:
        return TROUPE_EXIT_USAGE;
    case TROUPE_UNAVAILABLE:
    case TROUPE_RESOURCE_EXHAUSTED:
        return TROUPE_EXIT_ENVIRONMENT;
    default:
        return TROUPE_EXIT_FAILED;
    }
}

int troupe_fail(const struct troupe_runtime *runtime, enum troupe_status status)
{
    if (troupe_runtime_rank(runtime) == 0)
        troupe_complain(troupe_status_message());
    return troupe_exit_status(status);
}

int troupe_load_failed(const struct troupe_runtime *runtime, const char *path,
                       enum troupe_status status)
{
    struct stat found;
    int exit_status = troupe_fail(runtime, status);
    bool is_readable =
        access(path, R_OK) == 0 && stat(path, &found) == 0 && !S_ISDIR(found.st_mode);

    return status == TROUPE_UNAVAILABLE && !is_readable ? TROUPE_EXIT_USAGE : exit_status;
}

/* A closed standard stream's number would go to the next file or socket that is opened, and a
 * result would be written there. Standard output becomes a file that refuses writing. */
static void hold_standard_streams(void)
{
    for (int stream = 0; stream < 3; stream++)
        if (fcntl(stream, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", stream == 2 ? O_WRONLY : O_RDONLY);
}

/* Wrong usage is every rank's, and rank 0 says it; what one rank alone lacks ends the job. */
static int sim_failed(struct troupe_runtime *runtime, enum troupe_status status)
{
    if (status == TROUPE_INVALID_ARGUMENT)
        return troupe_fail(runtime, troupe_status_prefix(status, "--sim: "));
    fprintf(stderr, "troupe: rank %d: %s\n", troupe_runtime_rank(runtime), troupe_status_message());
    troupe_runtime_abort(runtime, troupe_exit_status(status));
    return troupe_exit_status(status);
}

static int run_command(struct troupe_runtime *runtime, const struct troupe_arguments *arguments)
{
    bool first = troupe_runtime_rank(runtime) == 0;

    if (arguments->version) {
        if (first)
            printf("troupe %s\n", TROUPE_VERSION);
        return TROUPE_EXIT_DONE;
    }
    if (arguments->help) {
        if (first)
            troupe_help_print(arguments->command);
        return TROUPE_EXIT_DONE;
    }
    if (arguments->sim != NULL) {
        enum troupe_status status = troupe_runtime_add_sim(runtime, arguments->sim);
        if (status != TROUPE_OK)
            return sim_failed(runtime, status);
    }
    return arguments->command->run(runtime, arguments);
}

/* What is still in the buffer of standard output must reach it. */
static int flush_output(int exit_status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return exit_status;
    if (exit_status == TROUPE_EXIT_DONE) {
        fprintf(stderr, "troupe: standard output: %s\n", strerror(errno));
        exit_status = TROUPE_EXIT_ENVIRONMENT;
    }
    return exit_status;
}

int main(int argc, char **argv)
{
    struct troupe_arguments arguments;
    struct troupe_runtime *runtime;
    char usage[TROUPE_MESSAGE_MAX];
    int exit_status;

    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write, with a message */
    enum troupe_status parsed = troupe_arguments_parse(argc, argv, &arguments);
    snprintf(usage, sizeof usage, "%s", troupe_status_message());
    troupe_log_set(arguments.log, NULL, NULL);

    /* Workers only where there is something to run: the other commands work in this thread. */
    bool needs_workers = parsed == TROUPE_OK && (arguments.command == &troupe_command_run ||
                                                 arguments.command == &troupe_command_info);
    enum troupe_status status =
        troupe_runtime_launch(&argc, &argv, needs_workers ? arguments.workers : 1, &runtime);
    if (status != TROUPE_OK) {
        troupe_complain(parsed != TROUPE_OK ? usage : troupe_status_message());
        exit_status = parsed != TROUPE_OK ? TROUPE_EXIT_USAGE : TROUPE_EXIT_ENVIRONMENT;
        goto free_arguments;
    }
    if (parsed != TROUPE_OK) {
        if (troupe_runtime_rank(runtime) == 0)
            troupe_complain(usage);
        exit_status = troupe_exit_status(parsed);
    } else {
        exit_status = run_command(runtime, &arguments);
    }
    exit_status = flush_output(exit_status);
    troupe_runtime_destroy(runtime);
free_arguments:
    troupe_arguments_fini(&arguments);
    return exit_status;
}
