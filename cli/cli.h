/* What the files of the command share. */
#ifndef TROUPE_CLI_CLI_H
#define TROUPE_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "troupe/log.h"
#include "troupe/runtime.h"
#include "troupe/session.h"
#include "troupe/status.h"

/* Exit statuses. */
enum troupe_exit {
    TROUPE_EXIT_DONE = 0,
    TROUPE_EXIT_FAILED = 1,      /* the run failed */
    TROUPE_EXIT_USAGE = 2,       /* wrong usage, a bad graph, a bad file that it names */
    TROUPE_EXIT_ENVIRONMENT = 3, /* MPI, a device, the file system */
    TROUPE_EXIT_SIGNAL = 128     /* plus the signal's number */
};

enum troupe_progress_mode {
    TROUPE_PROGRESS_AUTO = 0, /* in place on a terminal, else plain lines */
    TROUPE_PROGRESS_ALWAYS,   /* in place, terminal or not */
    TROUPE_PROGRESS_NEVER
};

/* The command line, decoded. Strings point into argv. */
struct troupe_arguments {
    const struct troupe_command *command; /* NULL: none (--help, --version) */
    bool help, version;
    const char *operand; /* the graph file or the op; NULL: none */
    const char **feeds;  /* "NAME=VALUE" */
    int feed_count;
    const char **fetches; /* "NAME[:PORT][=FILE.npy]" */
    int fetch_count;
    const char **targets;
    int target_count;
    int64_t steps;        /* -1: not given */
    const char *strategy; /* NULL: not given */
    const char *format;
    const char *sim;            /* NULL: not given */
    int workers, window, ranks; /* 0: not given */
    int runs, work_ns;          /* 0: not given */
    const char *graph;          /* of a benchmark; NULL: not given */
    uint64_t seed;              /* 0: not given */
    int64_t timeout_ms;         /* 0: not given */
    int64_t watchdog_ms;        /* 0: not given; -1: off */
    enum troupe_progress_mode progress;
    enum troupe_log_level log;
};

/* A subcommand: `run` is called on every rank and returns the exit status. */
struct troupe_command {
    const char *name;
    const char *operand; /* as usage shows it; "" for none */
    bool operand_required;
    const char *summary;
    uint32_t accepts; /* bit n: option number n of options.c */
    int (*run)(struct troupe_runtime *runtime, const struct troupe_arguments *arguments);
};

/* The numbers of the options, for `accepts`. */
enum troupe_option_id {
    TROUPE_OPTION_FEED = 0,
    TROUPE_OPTION_FETCH,
    TROUPE_OPTION_TARGET,
    TROUPE_OPTION_STEPS,
    TROUPE_OPTION_STRATEGY,
    TROUPE_OPTION_RANKS,
    TROUPE_OPTION_FORMAT,
    TROUPE_OPTION_SIM,
    TROUPE_OPTION_WORKERS,
    TROUPE_OPTION_WINDOW,
    TROUPE_OPTION_SEED,
    TROUPE_OPTION_TIMEOUT,
    TROUPE_OPTION_WATCHDOG,
    TROUPE_OPTION_PROGRESS,
    TROUPE_OPTION_RUNS,
    TROUPE_OPTION_GRAPH,
    TROUPE_OPTION_WORK,
    TROUPE_OPTION_LOG,
    TROUPE_OPTION_HELP,
    TROUPE_OPTION_VERSION,
    TROUPE_OPTION_COUNT
};

extern const struct troupe_command troupe_command_run, troupe_command_check, troupe_command_show,
    troupe_command_ops, troupe_command_info, troupe_command_bench;
/* All of them, ended by NULL (main.c). */
extern const struct troupe_command *const troupe_commands[];

/* Decodes argv into `arguments` (which arguments_fini frees, after a failure too).
 * INVALID_ARGUMENT with the message for the user. */
TROUPE_MUST_USE enum troupe_status troupe_arguments_parse(int argc, char **argv,
                                                          struct troupe_arguments *arguments);
void troupe_arguments_fini(struct troupe_arguments *arguments);
/* Prints the help of `command`, or of the whole program (NULL), on standard output. */
void troupe_help_print(const struct troupe_command *command);
/* The candidate that is nearest to `name`, NULL when none is near; `candidates` ends with NULL. */
const char *troupe_suggest(const char *name, const char *const *candidates);

/* Prints "troupe: MESSAGE" on standard error, the prefix before each line of the message. */
void troupe_complain(const char *message);
/* The exit status for a failure. */
int troupe_exit_status(enum troupe_status status);
/* On rank 0 prints the thread's message; returns the exit status for `status`. */
int troupe_fail(const struct troupe_runtime *runtime, enum troupe_status status);

/* As troupe_fail, for a graph file that was not loaded: one that cannot be read is wrong usage. */
int troupe_load_failed(const struct troupe_runtime *runtime, const char *path,
                       enum troupe_status status);

/* result.c: one JSON object, member by member, on one line. */
struct troupe_result {
    char *text;
    size_t length;
    void *stream; /* a FILE on text */
    char **keys;
    int key_count;
};
TROUPE_MUST_USE enum troupe_status troupe_result_init(struct troupe_result *result);
void troupe_result_fini(struct troupe_result *result);
/* Adds a member; `json` is the value's text. A key that is taken gets "PREFIX/" before it. */
TROUPE_MUST_USE enum troupe_status troupe_result_add(struct troupe_result *result,
                                                     const char *prefix, const char *key,
                                                     const char *json);
TROUPE_MUST_USE enum troupe_status troupe_result_add_string(struct troupe_result *result,
                                                            const char *key, const char *value);
TROUPE_MUST_USE enum troupe_status troupe_result_add_integer(struct troupe_result *result,
                                                             const char *key, uint64_t value);
TROUPE_MUST_USE enum troupe_status troupe_result_add_number(struct troupe_result *result,
                                                            const char *key, double value);
/* A tensor's value; NULL is null. */
TROUPE_MUST_USE enum troupe_status troupe_result_add_tensor(struct troupe_result *result,
                                                            const char *prefix, const char *key,
                                                            const struct troupe_tensor *tensor);
/* Writes the object and a newline on standard output. UNAVAILABLE when that fails. */
TROUPE_MUST_USE enum troupe_status troupe_result_write(struct troupe_result *result);

/* signals.c: the first SIGINT or SIGTERM asks the session to stop, the second ends the process. */
void troupe_signals_install(void);
/* The session that a signal stops; NULL: a signal ends the process. */
void troupe_signals_set_session(struct troupe_session *session);
/* The signal that came, 0 for none. */
int troupe_signals_caught(void);

/* progress.c: where a loop stands, on standard error. */
struct troupe_progress {
    enum troupe_progress_mode mode;
    bool in_place;
    const struct troupe_loop *loop;
    int64_t total; /* 0: not known */
    double start;  /* seconds, CLOCK_MONOTONIC */
    double shown;  /* when the last line was printed */
};
void troupe_progress_start(struct troupe_progress *progress, enum troupe_progress_mode mode,
                           const struct troupe_loop *loop, int64_t total);
/* Shows step `done` (from 1), whose loop's show values are `values`, when it is due. */
void troupe_progress_step(struct troupe_progress *progress, int64_t done,
                          struct troupe_tensor *const *values);
/* Ends the line in place. */
void troupe_progress_end(struct troupe_progress *progress);
/* Seconds of CLOCK_MONOTONIC. */
double troupe_seconds(void);

/* Element `index` as a number; NaN for a dtype that is none (troupe_is_number). */
double troupe_tensor_number(const struct troupe_tensor *tensor, int64_t index);
bool troupe_is_number(enum troupe_dtype dtype);

/* run_loop.c: runs the graph's loops in order and writes the result. Rank 0 only. */
int troupe_run_loops(struct troupe_runtime *runtime, struct troupe_session *session,
                     const struct troupe_arguments *arguments);
/* The message and exit status of a run that failed or was stopped after `done` steps. Rank 0. */
int troupe_run_failed(const struct troupe_runtime *runtime, enum troupe_status status,
                      int64_t done);

#endif
