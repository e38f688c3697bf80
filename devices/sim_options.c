/* What a user says about simulated devices. Invariant: every number has its unit, and its bounds.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "devices/sim.h"

struct unit {
    const char *name;
    double times;
};

static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct unit byte_units[] = {{"B", 1},           {"kB", 1e3},           {"KB", 1e3},
                                         {"MB", 1e6},        {"GB", 1e9},           {"KiB", 1024.0},
                                         {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {NULL, 0}};
static const struct unit rate_units[] = {{"B/s", 1},    {"kB/s", 1e3}, {"KB/s", 1e3},
                                         {"MB/s", 1e6}, {"GB/s", 1e9}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

enum option_id { OPTION_LATENCY, OPTION_BANDWIDTH, OPTION_DELAYS, OPTION_MEMORY, OPTION_COUNT };

static const struct option_row {
    const char *name, *wants;
    const struct unit *units;
    double minimum, maximum;
} option_rows[OPTION_COUNT] = {
    [OPTION_LATENCY] = {"latency", "a time to 10s with its unit (ns, us, ms, s)", time_units, 0,
                        1e10},
    [OPTION_BANDWIDTH] = {"bandwidth", "a rate from 1KB/s with its unit (B/s, KB/s, MB/s, GB/s)",
                          rate_units, 1e3, 1e15},
    [OPTION_DELAYS] = {"delays", "a seed from 1 to 4294967295", no_units, 1, 4294967295.0},
    [OPTION_MEMORY] = {"memory",
                       "from 4KiB to 1024GiB with its unit (B, KB, MB, GB, KiB, MiB, GiB)",
                       byte_units, 4096, (double)TROUPE_SIM_MEMORY_MAX},
};

/* A number with a unit, all of the `length` bytes. */
static bool read_quantity(const char *text, size_t length, const struct unit *units, double *out)
{
    char copy[40], *end;
    if (length == 0 || length >= sizeof(copy) || !isdigit((unsigned char)text[0]))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.") == 0 || strpbrk(copy, "xXeEpPnN") == copy + 1)
        return false;
    errno = 0;
    double number = strtod(copy, &end);
    if (errno != 0)
        return false;
    for (; units->name; units++) {
        if (strcmp(units->name, end) != 0)
            continue;
        *out = number * units->times;
        return true;
    }
    return false;
}

static enum troupe_status read_part(const char *text, size_t length, double *values)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length;
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        double value;
        if (strlen(row->name) != name || strncmp(row->name, text, name) != 0)
            continue;
        if (equals && read_quantity(equals + 1, length - name - 1, row->units, &value) &&
            value >= row->minimum && value <= row->maximum) {
            values[i] = value;
            return TROUPE_OK;
        }
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%.*s\": %s wants %s", (int)length,
                                  text, row->name, row->wants);
    }
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "no option \"%.*s\": there are latency, bandwidth, delays and "
                              "memory",
                              (int)name, text);
}

enum troupe_status troupe_sim_options_parse(const char *text, struct troupe_sim_options *out)
{
    double count, values[OPTION_COUNT] = {[OPTION_MEMORY] = (double)TROUPE_SIM_MEMORY_USUAL};
    size_t length = strcspn(text, ",");
    if (!read_quantity(text, length, no_units, &count) || count < 1 || count > TROUPE_SIM_MAX ||
        memchr(text, '.', length))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"%s\" wants the number of devices first, from 1 to %d, as "
                                  "in 2,latency=10us,bandwidth=1GB/s,delays=7,memory=64MB",
                                  text, TROUPE_SIM_MAX);
    for (text += length; *text; text += length) {
        text++; /* the comma */
        length = strcspn(text, ",");
        enum troupe_status status = read_part(text, length, values);
        if (status != TROUPE_OK)
            return status;
    }
    *out = (struct troupe_sim_options){
        .count = (int)count,
        .latency_ns = (uint64_t)values[OPTION_LATENCY],
        .bandwidth = (uint64_t)values[OPTION_BANDWIDTH],
        .delay_seed = (uint64_t)values[OPTION_DELAYS],
        .memory = (size_t)values[OPTION_MEMORY],
    };
    return TROUPE_OK;
}
