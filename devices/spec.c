/* Device names. Invariant: a part of a spec that was not stated is "" or -1, and fits anything. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/device.h"

static bool take(const char **at, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool is_word(int letter)
{
    return isalnum(letter) || letter == '_' || letter == '-' || letter == '.';
}

/* Copies a word that fits. */
static bool take_word(const char **at, char *out, size_t size)
{
    size_t length = 0;
    while (is_word((unsigned char)(*at)[length]))
        length++;
    if (length == 0 || length >= size)
        return false;
    memcpy(out, *at, length);
    out[length] = '\0';
    *at += length;
    return true;
}

/* A number, or * for any. */
static bool take_number(const char **at, int *out)
{
    if (take(at, "*")) {
        *out = -1;
        return true;
    }
    if (!isdigit((unsigned char)**at))
        return false;
    char *end;
    errno = 0;
    long value = strtol(*at, &end, 10);
    if (errno == ERANGE || value > INT32_MAX)
        return false;
    *out = (int)value;
    *at = end;
    return true;
}

/* TYPE or TYPE:N; the type in upper case, so that "/device:cpu:0" is the same device. */
static bool take_device(const char **at, struct troupe_device_spec *spec)
{
    if (!isalpha((unsigned char)**at) || !take_word(at, spec->type, sizeof(spec->type)))
        return false;
    for (char *letter = spec->type; *letter; letter++)
        *letter = (char)toupper((unsigned char)*letter);
    return !take(at, ":") || take_number(at, &spec->index);
}

static bool take_part(const char **at, struct troupe_device_spec *spec)
{
    int replica;
    if (take(at, "/job:"))
        return !spec->job[0] && take_word(at, spec->job, sizeof(spec->job));
    if (take(at, "/task:"))
        return spec->task < 0 && take_number(at, &spec->task);
    if (take(at, "/device:"))
        return !spec->type[0] && take_device(at, spec);
    /* Exported graphs state a replica, which is always 0 and chooses nothing. */
    return take(at, "/replica:") && take_number(at, &replica) && replica <= 0;
}

enum troupe_status troupe_device_spec_parse(const char *name, struct troupe_device_spec *out)
{
    struct troupe_device_spec spec = {.task = -1, .index = -1};
    const char *at = name;
    bool right = true;
    if (*at && *at != '/')
        right = strchr(at, ':') && take_device(&at, &spec) && !*at;
    while (right && *at)
        right = take_part(&at, &spec);
    if (!right)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "device \"%s\": wants /job:NAME/task:N/device:TYPE:N, each part "
                                  "optional and at most once",
                                  name);
    *out = spec;
    return TROUPE_OK;
}

const char *troupe_device_spec_print(const struct troupe_device_spec *spec, char *out, size_t size)
{
    char task[24] = "", index[16] = "";
    if (spec->task >= 0)
        snprintf(task, sizeof(task), "/task:%d", spec->task);
    if (spec->index >= 0)
        snprintf(index, sizeof(index), ":%d", spec->index);
    snprintf(out, size, "%s%s%s%s%s%s", spec->job[0] ? "/job:" : "", spec->job, task,
             spec->type[0] ? "/device:" : "", spec->type, spec->type[0] ? index : "");
    return out;
}

bool troupe_device_spec_fits(const struct troupe_device_spec *want,
                             const struct troupe_device_spec *have)
{
    return (!want->job[0] || strcmp(want->job, have->job) == 0) &&
           (want->task < 0 || want->task == have->task) &&
           (!want->type[0] || strcmp(want->type, have->type) == 0) &&
           (want->index < 0 || want->index == have->index);
}

/* Takes over a stated part; false when both state different ones. */
/* All three have room for `size` bytes. */
static bool merge_text(const char *a, const char *b, char *out, size_t size)
{
    memcpy(out, a[0] ? a : b, size);
    return !a[0] || !b[0] || strcmp(a, b) == 0;
}

static bool merge_number(int a, int b, int *out)
{
    *out = a >= 0 ? a : b;
    return a < 0 || b < 0 || a == b;
}

enum troupe_status troupe_device_spec_merge(const struct troupe_device_spec *a,
                                            const struct troupe_device_spec *b,
                                            struct troupe_device_spec *out)
{
    struct troupe_device_spec merged;
    if (!merge_text(a->job, b->job, merged.job, sizeof(merged.job)) ||
        !merge_number(a->task, b->task, &merged.task) ||
        !merge_text(a->type, b->type, merged.type, sizeof(merged.type)) ||
        !merge_number(a->index, b->index, &merged.index))
        return TROUPE_INVALID_ARGUMENT;
    *out = merged;
    return TROUPE_OK;
}
