/* The command line: which options there are, what each wants, and what it means.
 *
 * Every rank parses the same argv and comes to the same end, so that a wrong one leaves no rank
 * waiting for another. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* getopt_long returns FIRST + number, out of the way of characters. */
#define OPTION_FIRST 256
#define SECONDS_MAX  1e9

struct option_row {
    const char *name;
    const char *value; /* as help shows it; NULL: the option takes none */
    const char *help;
};

static const struct option_row option_rows[TROUPE_OPTION_COUNT] = {
    [TROUPE_OPTION_FEED] = {"feed", "NAME=VALUE",
                            "the value of a node: a JSON literal, or @FILE.npy"},
    [TROUPE_OPTION_FETCH] = {"fetch", "NAME[:PORT][=FILE.npy]",
                             "print this value, or write it to a file"},
    [TROUPE_OPTION_TARGET] = {"target", "NAME", "run this node"},
    [TROUPE_OPTION_STEPS] = {"steps", "N",
                             "run N steps (of the first loop, where there are loops)"},
    [TROUPE_OPTION_STRATEGY] = {"strategy", "SPEC", "\"data-parallel\", or \"none\""},
    [TROUPE_OPTION_RANKS] = {"ranks", "N", "plan for N ranks"},
    [TROUPE_OPTION_FORMAT] = {"format", "FORMAT", "how to print"},
    [TROUPE_OPTION_SIM] = {"sim", "N[,NAME=VALUE...]",
                           "simulated devices of each rank: SIM:0, SIM:1, ..."},
    [TROUPE_OPTION_WORKERS] = {"workers", "N", "workers of each rank"},
    [TROUPE_OPTION_WINDOW] = {"window", "N", "steps in flight"},
    [TROUPE_OPTION_SEED] = {"seed", "N", "seed of random numbers and shuffles, from 1"},
    [TROUPE_OPTION_TIMEOUT] = {"timeout", "SECONDS", "end the run when it takes longer"},
    [TROUPE_OPTION_WATCHDOG] = {"watchdog", "SECONDS",
                                "end a run in which nothing happens for so long (60); 0: never"},
    [TROUPE_OPTION_PROGRESS] = {"progress", "auto|always|never",
                                "a line rewritten in place on a terminal, else plain lines"},
    [TROUPE_OPTION_RUNS] = {"runs", "N", "measure N times, after one that does not count"},
    [TROUPE_OPTION_GRAPH] = {"graph", "NAME", "measure this graph alone"},
    [TROUPE_OPTION_WORK] = {"work-ns", "N", "every node works for N nanoseconds"},
    [TROUPE_OPTION_LOG] = {"log", "LEVEL", "\"error\", \"warning\", \"info\" or \"debug\""},
    [TROUPE_OPTION_HELP] = {"help", NULL, "print this"},
    [TROUPE_OPTION_VERSION] = {"version", NULL, "print the version"},
};

/* Number of edits (insert, remove, replace) from a to b; strings beyond 63 bytes are far. */
static unsigned edit_distance(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    unsigned row[64];

    if (a_length >= 64 || b_length >= 64)
        return 64;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_length];
}

const char *troupe_suggest(const char *name, const char *const *candidates)
{
    const char *nearest = NULL;
    unsigned best = 3;

    for (; *candidates != NULL; candidates++) {
        unsigned distance = edit_distance(name, *candidates);
        if (distance < best && distance < strlen(*candidates)) {
            best = distance;
            nearest = *candidates;
        }
    }
    return nearest;
}

static bool accepts(const struct troupe_command *command, int id)
{
    if (id == TROUPE_OPTION_HELP)
        return true;
    if (command == NULL)
        return id == TROUPE_OPTION_VERSION;
    return (command->accepts >> id & 1) != 0;
}

static enum troupe_status unknown_option(const struct troupe_command *command, const char *given)
{
    const char *names[TROUPE_OPTION_COUNT + 1];
    int count = 0;
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    for (int id = 0; id < TROUPE_OPTION_COUNT; id++)
        if (accepts(command, id))
            names[count++] = option_rows[id].name;
    names[count] = NULL;
    const char *nearest = troupe_suggest(name + strspn(name, "-"), names);
    if (nearest != NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "unknown option \"%s\" (did you mean \"--%s\"?)", name, nearest);
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "unknown option \"%s\"; \"troupe%s%s --help\" lists them", name,
                              command == NULL ? "" : " ", command == NULL ? "" : command->name);
}

static enum troupe_status read_integer(int id, const char *text, uint64_t minimum, uint64_t maximum,
                                       uint64_t *out)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < minimum ||
        value > maximum)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "--%s wants a whole number from %llu to %llu, got \"%s\"",
            option_rows[id].name, (unsigned long long)minimum, (unsigned long long)maximum, text);
    *out = value;
    return TROUPE_OK;
}

static enum troupe_status read_int(int id, const char *text, uint64_t maximum, int *out)
{
    uint64_t value = 0;
    enum troupe_status status = read_integer(id, text, 1, maximum, &value);

    if (status == TROUPE_OK)
        *out = (int)value;
    return status;
}

/* Seconds with a fraction, as milliseconds; 0 where that is allowed. */
static enum troupe_status read_seconds(int id, const char *text, bool may_be_zero, int64_t *out)
{
    char *end;

    errno = 0;
    double seconds = strtod(text, &end);
    bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    bool is_zero = is_number && seconds <= 0 && may_be_zero;
    if (!is_zero && (!is_number || !(seconds >= 0.001 && seconds <= SECONDS_MAX)))
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "--%s wants seconds, from 0.001 to %.0f%s, got \"%s\"",
            option_rows[id].name, SECONDS_MAX, may_be_zero ? ", or 0" : "", text);
    *out = (int64_t)(seconds * 1000.0 + 0.5);
    return TROUPE_OK;
}

static enum troupe_status read_progress(const char *text, enum troupe_progress_mode *out)
{
    static const char *const names[] = {[TROUPE_PROGRESS_AUTO] = "auto",
                                        [TROUPE_PROGRESS_ALWAYS] = "always",
                                        [TROUPE_PROGRESS_NEVER] = "never"};

    for (int mode = 0; mode < 3; mode++)
        if (strcmp(text, names[mode]) == 0) {
            *out = (enum troupe_progress_mode)mode;
            return TROUPE_OK;
        }
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "--progress wants \"auto\", \"always\" or \"never\", got \"%s\"",
                              text);
}

/* True when two values name the same thing, up to '='. */
static bool same_name(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");

    return length == strcspn(b, "=") && strncmp(a, b, length) == 0;
}

/* Adds to a list that has room for every word of the command line. */
static enum troupe_status append(int id, const char *text, const char **list, int *count)
{
    size_t name = strcspn(text, "=");

    if (name == 0 || (id == TROUPE_OPTION_FEED && text[name] == '\0'))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "--%s wants %s, got \"%s\"",
                                  option_rows[id].name, option_rows[id].value, text);
    if (id == TROUPE_OPTION_FETCH && text[name] == '=') {
        size_t length = strlen(text);
        if (length < name + 6 || strcmp(text + length - 4, ".npy") != 0)
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT,
                "--fetch writes files whose names end in \".npy\", got \"%s\"", text + name + 1);
    }
    for (int i = 0; i < *count; i++)
        if (same_name(list[i], text))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "--%s \"%.*s\" is given twice",
                                      option_rows[id].name, (int)name, text);
    list[(*count)++] = text;
    return TROUPE_OK;
}

static enum troupe_status read_option(int id, const char *text, struct troupe_arguments *arguments)
{
    uint64_t value = 0;
    enum troupe_status status;

    switch (id) {
    case TROUPE_OPTION_FEED:
        return append(id, text, arguments->feeds, &arguments->feed_count);
    case TROUPE_OPTION_FETCH:
        return append(id, text, arguments->fetches, &arguments->fetch_count);
    case TROUPE_OPTION_TARGET:
        return append(id, text, arguments->targets, &arguments->target_count);
    case TROUPE_OPTION_STEPS:
        status = read_integer(id, text, 1, INT64_MAX, &value);
        if (status == TROUPE_OK)
            arguments->steps = (int64_t)value;
        return status;
    case TROUPE_OPTION_SEED:
        return read_integer(id, text, 1, UINT64_MAX, &arguments->seed);
    case TROUPE_OPTION_STRATEGY:
        arguments->strategy = text;
        return TROUPE_OK;
    case TROUPE_OPTION_FORMAT:
        arguments->format = text;
        return TROUPE_OK;
    case TROUPE_OPTION_SIM:
        arguments->sim = text;
        return TROUPE_OK;
    case TROUPE_OPTION_RANKS:
        return read_int(id, text, 1 << 20, &arguments->ranks);
    case TROUPE_OPTION_WORKERS:
        return read_int(id, text, 4096, &arguments->workers);
    case TROUPE_OPTION_WINDOW:
        return read_int(id, text, 1024, &arguments->window);
    case TROUPE_OPTION_TIMEOUT:
        return read_seconds(id, text, false, &arguments->timeout_ms);
    case TROUPE_OPTION_WATCHDOG:
        status = read_seconds(id, text, true, &arguments->watchdog_ms);
        if (status == TROUPE_OK && arguments->watchdog_ms == 0)
            arguments->watchdog_ms = -1;
        return status;
    case TROUPE_OPTION_RUNS:
        return read_int(id, text, 10000, &arguments->runs);
    case TROUPE_OPTION_GRAPH:
        arguments->graph = text;
        return TROUPE_OK;
    case TROUPE_OPTION_WORK:
        return read_int(id, text, 1000000, &arguments->work_ns);
    case TROUPE_OPTION_PROGRESS:
        return read_progress(text, &arguments->progress);
    case TROUPE_OPTION_LOG:
        return troupe_log_level_parse(text, &arguments->log);
    case TROUPE_OPTION_VERSION:
        arguments->version = true;
        return TROUPE_OK;
    default:
        arguments->help = true;
        return TROUPE_OK;
    }
}

/* Reads the options of `command` (NULL: of the program) from argv[1] on; the words that are left
 * start at *first. */
static enum troupe_status read_options(int argc, char **argv, const struct troupe_command *command,
                                       struct troupe_arguments *arguments, int *first)
{
    struct option table[TROUPE_OPTION_COUNT + 1];
    int count = 0, got;

    for (int id = 0; id < TROUPE_OPTION_COUNT; id++)
        if (accepts(command, id))
            table[count++] = (struct option){.name = option_rows[id].name,
                                             .has_arg = option_rows[id].value != NULL,
                                             .val = OPTION_FIRST + id};
    table[count] = (struct option){0};
    optind = 0; /* getopt starts anew */
    opterr = 0;
    while ((got = getopt_long(argc, argv, command == NULL ? "+:h" : ":h", table, NULL)) != -1) {
        enum troupe_status status;
        if (got == ':')
            status = troupe_status_fail(TROUPE_INVALID_ARGUMENT, "option \"%s\" wants a value",
                                        argv[optind - 1]);
        else if (got == '?')
            status = unknown_option(command, optopt > 0 && optopt < OPTION_FIRST
                                                 ? (char[]){'-', (char)optopt, '\0'}
                                                 : argv[optind - 1]);
        else
            status = read_option(got == 'h' ? TROUPE_OPTION_HELP : got - OPTION_FIRST, optarg,
                                 arguments);
        if (status != TROUPE_OK)
            return status;
    }
    *first = optind;
    return TROUPE_OK;
}

static enum troupe_status find_command(const char *name, const struct troupe_command **out)
{
    const char *names[16];
    int count = 0;

    for (; troupe_commands[count] != NULL; count++) {
        names[count] = troupe_commands[count]->name;
        if (strcmp(names[count], name) == 0) {
            *out = troupe_commands[count];
            return TROUPE_OK;
        }
    }
    names[count] = NULL;
    const char *nearest = troupe_suggest(name, names);
    if (nearest != NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "unknown command \"%s\" (did you mean \"%s\"?)", name, nearest);
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "unknown command \"%s\"; \"troupe --help\" lists them", name);
}

static enum troupe_status read_operand(int count, char **words, struct troupe_arguments *arguments)
{
    const struct troupe_command *command = arguments->command;

    if (arguments->help)
        return TROUPE_OK;
    if (count == 0 && command->operand_required)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s wants %s; \"troupe %s --help\" says more", command->name,
                                  command->operand, command->name);
    int wanted = command->operand[0] != '\0';
    if (count > wanted)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s takes %s, and \"%s\" is more than that", command->name,
                                  wanted ? "one argument" : "no argument", words[wanted]);
    if (count == 1)
        arguments->operand = words[0];
    return TROUPE_OK;
}

enum troupe_status troupe_arguments_parse(int argc, char **argv, struct troupe_arguments *arguments)
{
    size_t room = (size_t)argc + 1;
    int first;

    *arguments = (struct troupe_arguments){.steps = -1, .log = TROUPE_LOG_WARNING};
    arguments->feeds = calloc(room, sizeof *arguments->feeds);
    arguments->fetches = calloc(room, sizeof *arguments->fetches);
    arguments->targets = calloc(room, sizeof *arguments->targets);
    if (arguments->feeds == NULL || arguments->fetches == NULL || arguments->targets == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the command line");

    enum troupe_status status = read_options(argc, argv, NULL, arguments, &first);
    if (status != TROUPE_OK || arguments->help || arguments->version)
        return status;
    if (first >= argc)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "no command; \"troupe --help\" lists them");
    status = find_command(argv[first], &arguments->command);
    if (status != TROUPE_OK)
        return status;
    argc -= first;
    argv += first;
    status = read_options(argc, argv, arguments->command, arguments, &first);
    if (status != TROUPE_OK)
        return status;
    return read_operand(argc - first, argv + first, arguments);
}

void troupe_arguments_fini(struct troupe_arguments *arguments)
{
    free(arguments->feeds);
    free(arguments->fetches);
    free(arguments->targets);
}

void troupe_help_print(const struct troupe_command *command)
{
    if (command == NULL) {
        printf("usage: troupe COMMAND ...\n\ncommands:\n");
        for (int i = 0; troupe_commands[i] != NULL; i++)
            printf("  %-8s %s\n", troupe_commands[i]->name, troupe_commands[i]->summary);
        printf("\noptions:\n  --help     print this, or the help of a command\n"
               "  --version  print the version\n");
        return;
    }
    printf("usage: troupe %s%s%s%s%s [OPTION...]\n\n%s\n\noptions:\n", command->name,
           command->operand[0] != '\0' ? " " : "", command->operand_required ? "" : "[",
           command->operand, command->operand_required ? "" : "]", command->summary);
    for (int id = 0; id < TROUPE_OPTION_COUNT; id++) {
        char text[80];
        if (!accepts(command, id))
            continue;
        snprintf(text, sizeof text, "--%s %s", option_rows[id].name,
                 option_rows[id].value == NULL ? "" : option_rows[id].value);
        printf("  %-34s %s\n", text, option_rows[id].help);
    }
}
