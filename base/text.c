/* Growing text, and the nearest of several names. Invariant: `data`, once there, holds `length`
 * bytes and a zero byte within `capacity`. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Longer names are not compared. */
#define NEAREST_MAX 128

void troupe_text_init(struct troupe_text *text)
{
    *text = (struct troupe_text){0};
}

void troupe_text_fini(struct troupe_text *text)
{
    free(text->data);
    troupe_text_init(text);
}

/* Makes room for `more` bytes and the zero byte. */
static bool text_reserve(struct troupe_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (more < text->capacity - text->length)
        return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity - text->length <= more && capacity <= SIZE_MAX / 4)
        capacity *= 2;
    char *data =
        capacity - text->length > more ? troupe_reallocarray(text->data, capacity, 1) : NULL;
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void troupe_text_add(struct troupe_text *text, const char *string)
{
    troupe_text_add_bytes(text, string, strlen(string));
}

void troupe_text_add_bytes(struct troupe_text *text, const char *bytes, size_t count)
{
    if (!text_reserve(text, count))
        return;
    if (count > 0)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void troupe_text_addf(struct troupe_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        text->failed = true;
    if (length < 0 || !text_reserve(text, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

char *troupe_text_take(struct troupe_text *text)
{
    char *data = NULL;
    if (!text->failed)
        data = text->data ? text->data : troupe_strdup("");
    if (text->failed)
        free(text->data);
    troupe_text_init(text);
    return data;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int change_cost(char from, char to)
{
    unsigned char x = (unsigned char)from, y = (unsigned char)to;
    if (x == y)
        return 0;
    return tolower(x) == tolower(y) ? 1 : 2;
}

/* Twice the edit distance (Levenshtein, 1966), a change of case counting 1. */
static int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int row[NEAREST_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = 2 * (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        int diagonal = row[0];
        row[0] = 2 * (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            int change = change_cost(a[i - 1], b[j - 1]);
            int best = smaller(diagonal + change, smaller(row[j], row[j - 1]) + 2);
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[b_length];
}

const char *troupe_text_nearest(const char *name, const char *const *candidates, size_t count)
{
    size_t length = strlen(name);
    if (length > NEAREST_MAX)
        return NULL;
    int best = 2 * (length / 3 > 2 ? (int)(length / 3) : 2) + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > NEAREST_MAX)
            continue;
        int far = distance(name, length, candidates[i], other);
        /* What shares not even a letter is not near, however short. */
        if (far < best && far < 2 * (int)(length > other ? length : other)) {
            best = far;
            nearest = candidates[i];
        }
    }
    return nearest;
}
