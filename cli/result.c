/* The result of a run: one JSON object on one line of standard output.
 *
 * Invariant: `stream` holds the object up to its last member, without the closing brace. Values
 * come as JSON text, so that a tensor's digits stay as the library prints them. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static enum troupe_status no_memory(void)
{
    return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the result");
}

enum troupe_status troupe_result_init(struct troupe_result *result)
{
    *result = (struct troupe_result){0};
    FILE *stream = open_memstream(&result->text, &result->length);
    if (stream == NULL)
        return no_memory();
    result->stream = stream;
    return TROUPE_OK;
}

void troupe_result_fini(struct troupe_result *result)
{
    FILE *stream = result->stream;

    if (stream != NULL)
        fclose(stream);
    free(result->text);
    for (int i = 0; i < result->key_count; i++)
        free(result->keys[i]);
    free(result->keys);
}

static bool has_key(const struct troupe_result *result, const char *key)
{
    for (int i = 0; i < result->key_count; i++)
        if (strcmp(result->keys[i], key) == 0)
            return true;
    return false;
}

/* Copies the key, with the prefix where it is taken; NULL without memory. */
static char *make_key(const struct troupe_result *result, const char *prefix, const char *key)
{
    char *text;

    if (prefix == NULL || !has_key(result, key))
        return strdup(key);
    return asprintf(&text, "%s/%s", prefix, key) < 0 ? NULL : text;
}

/* `text` as a JSON string; NULL without memory or for text that is no UTF-8. free() frees. */
static char *quote(const char *text)
{
    json_t *string = json_string(text);
    char *quoted = json_dumps(string, JSON_ENCODE_ANY);

    json_decref(string);
    return quoted;
}

enum troupe_status troupe_result_add(struct troupe_result *result, const char *prefix,
                                     const char *key, const char *json)
{
    FILE *stream = result->stream;
    char **keys = realloc(result->keys, ((size_t)result->key_count + 1) * sizeof *keys);

    if (keys == NULL)
        return no_memory();
    result->keys = keys;
    char *name = make_key(result, prefix, key);
    if (name == NULL)
        return no_memory();
    char *quoted = quote(name);
    if (quoted == NULL) {
        free(name);
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "the name \"%s\" is not UTF-8", key);
    }
    fprintf(stream, "%s%s: %s", result->key_count == 0 ? "{" : ", ", quoted, json);
    free(quoted);
    keys[result->key_count++] = name;
    return TROUPE_OK;
}

enum troupe_status troupe_result_add_string(struct troupe_result *result, const char *key,
                                            const char *value)
{
    char *quoted = quote(value);

    if (quoted == NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "the value of %s is not UTF-8", key);
    enum troupe_status status = troupe_result_add(result, NULL, key, quoted);
    free(quoted);
    return status;
}

enum troupe_status troupe_result_add_integer(struct troupe_result *result, const char *key,
                                             uint64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64, value);
    return troupe_result_add(result, NULL, key, text);
}

enum troupe_status troupe_result_add_number(struct troupe_result *result, const char *key,
                                            double value)
{
    char text[40];

    /* JSON has no NaN and no infinity. */
    snprintf(text, sizeof text, "%.10g", value);
    return troupe_result_add(result, NULL, key, isfinite(value) ? text : "null");
}

enum troupe_status troupe_result_add_tensor(struct troupe_result *result, const char *prefix,
                                            const char *key, const struct troupe_tensor *tensor)
{
    char *text;

    if (tensor == NULL)
        return troupe_result_add(result, prefix, key, "null");
    enum troupe_status status = troupe_tensor_print(tensor, &text);
    if (status != TROUPE_OK)
        return status;
    status = troupe_result_add(result, prefix, key, text);
    free(text);
    return status;
}

enum troupe_status troupe_result_write(struct troupe_result *result)
{
    FILE *stream = result->stream;

    fputs(result->key_count == 0 ? "{}" : "}", stream);
    if (fflush(stream) != 0)
        return no_memory();
    if (puts(result->text) < 0 || fflush(stdout) != 0) {
        int code = errno;
        clearerr(stdout); /* this failure has its message already */
        return troupe_status_fail(TROUPE_UNAVAILABLE, "standard output: %s", strerror(code));
    }
    return TROUPE_OK;
}
