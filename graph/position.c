/* Lines and columns of JSON values. Invariant: the cursor never passes the end of the text, and
 * nesting is counted, not recursed into. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "graph/position.h"

#define PATH_DEPTH_MAX 16

struct cursor {
    const char *text;
    size_t length;
    struct troupe_place place;
};

static int cursor_peek(const struct cursor *cursor)
{
    return cursor->place.offset < cursor->length ? (unsigned char)cursor->text[cursor->place.offset]
                                                 : -1;
}

static void cursor_advance(struct cursor *cursor)
{
    int byte = cursor_peek(cursor), next;

    if (byte < 0)
        return;
    cursor->place.offset++;
    if (byte == '\n') {
        cursor->place.line++;
        cursor->place.column = 1;
        return;
    }
    /* A character ends where the next byte is no continuation of it. */
    next = cursor_peek(cursor);
    if (next < 0 || (next & 0xc0) != 0x80)
        cursor->place.column++;
}

static void cursor_skip_space(struct cursor *cursor)
{
    int byte = cursor_peek(cursor);

    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        cursor_advance(cursor);
        byte = cursor_peek(cursor);
    }
}

static void cursor_skip_string(struct cursor *cursor)
{
    int byte;

    cursor_advance(cursor);
    while ((byte = cursor_peek(cursor)) >= 0 && byte != '"') {
        cursor_advance(cursor);
        if (byte == '\\')
            cursor_advance(cursor);
    }
    cursor_advance(cursor);
}

/* Skips one value: to its closing bracket, or to what ends a number or a word. */
static void cursor_skip_value(struct cursor *cursor)
{
    size_t depth = 0;
    int byte;

    cursor_skip_space(cursor);
    while ((byte = cursor_peek(cursor)) >= 0) {
        if (byte == '"') {
            cursor_skip_string(cursor);
            if (depth == 0)
                return;
            continue;
        }
        if (depth == 0 && (byte == ',' || byte == ']' || byte == '}' || byte == ' ' ||
                           byte == '\n' || byte == '\r' || byte == '\t'))
            return;
        if (byte == '[' || byte == '{')
            depth++;
        cursor_advance(cursor);
        if ((byte == ']' || byte == '}') && --depth == 0)
            return;
    }
}

/* True when the string literal [from, to) of the text says `key`. */
static bool literal_is(const char *from, size_t bytes, const char *key)
{
    json_t *decoded;
    bool same;

    if (memchr(from, '\\', bytes) == NULL)
        return bytes == strlen(key) + 2 && memcmp(from + 1, key, bytes - 2) == 0;
    decoded = json_loadb(from, bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    same = decoded != NULL && json_string_length(decoded) == strlen(key) &&
           memcmp(json_string_value(decoded), key, strlen(key)) == 0;
    json_decref(decoded);
    return same;
}

/* From the start of an object to the value of `key`; `key_place` is where the key stands. */
static bool cursor_enter_member(struct cursor *cursor, const char *key,
                                struct troupe_place *key_place)
{
    cursor_skip_space(cursor);
    if (cursor_peek(cursor) != '{')
        return false;
    cursor_advance(cursor);
    for (;;) {
        size_t start;
        bool found;

        cursor_skip_space(cursor);
        if (cursor_peek(cursor) != '"')
            return false;
        *key_place = cursor->place;
        start = cursor->place.offset;
        cursor_skip_string(cursor);
        found = literal_is(cursor->text + start, cursor->place.offset - start, key);
        cursor_skip_space(cursor);
        cursor_advance(cursor); /* the colon */
        cursor_skip_space(cursor);
        if (found)
            return true;
        cursor_skip_value(cursor);
        cursor_skip_space(cursor);
        cursor_advance(cursor); /* the comma */
    }
}

/* To the next element of an array whose cursor stands before an element. */
static bool cursor_next_element(struct cursor *cursor)
{
    cursor_skip_value(cursor);
    cursor_skip_space(cursor);
    if (cursor_peek(cursor) != ',')
        return false;
    cursor_advance(cursor);
    cursor_skip_space(cursor);
    return true;
}

static bool cursor_enter_array(struct cursor *cursor)
{
    cursor_skip_space(cursor);
    if (cursor_peek(cursor) != '[')
        return false;
    cursor_advance(cursor);
    cursor_skip_space(cursor);
    return cursor_peek(cursor) != ']';
}

enum troupe_status troupe_positions_init(struct troupe_positions *positions,
                                         const struct troupe_positions *within,
                                         const struct troupe_json_path *path, size_t node_count)
{
    struct cursor cursor = {within->text, within->length, {0, 1, 1}};
    size_t count = 0;
    bool more;

    *positions = (struct troupe_positions){within->text, within->length, path, NULL, 0};
    if (node_count == 0)
        return TROUPE_OK;
    positions->nodes = troupe_calloc(node_count, sizeof(*positions->nodes));
    if (positions->nodes == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the places of nodes");
    cursor.place = troupe_positions_find(within, path, false);
    more = cursor_enter_array(&cursor);
    while (more && count < node_count) {
        positions->nodes[count++] = cursor.place;
        more = cursor_next_element(&cursor);
    }
    positions->node_count = count;
    return TROUPE_OK;
}

void troupe_positions_fini(struct troupe_positions *positions)
{
    free(positions->nodes);
    *positions = (struct troupe_positions){0};
}

static bool cursor_follow(struct cursor *cursor, const struct troupe_json_path *step,
                          struct troupe_place *key_place)
{
    if (step->key != NULL)
        return cursor_enter_member(cursor, step->key, key_place);
    if (!cursor_enter_array(cursor))
        return false;
    for (size_t i = 0; i < step->index; i++) {
        if (!cursor_next_element(cursor))
            return false;
    }
    *key_place = cursor->place;
    return true;
}

static bool step_equal(const struct troupe_json_path *a, const struct troupe_json_path *b)
{
    if (a->key == NULL || b->key == NULL)
        return a->key == b->key && a->index == b->index;
    return strcmp(a->key, b->key) == 0;
}

/* How many of the steps lead to an element of the array of nodes; 0 when they do not. */
static int path_enter_node(const struct troupe_positions *positions,
                           const struct troupe_json_path *const *steps, int depth)
{
    int length = 0, at;

    for (const struct troupe_json_path *step = positions->path; step != NULL; step = step->parent)
        length++;
    if (depth <= length || steps[length]->key != NULL ||
        steps[length]->index >= positions->node_count)
        return 0;
    at = length;
    for (const struct troupe_json_path *step = positions->path; step != NULL; step = step->parent) {
        if (!step_equal(step, steps[--at]))
            return 0;
    }
    return length + 1;
}

struct troupe_place troupe_positions_find(const struct troupe_positions *positions,
                                          const struct troupe_json_path *path, bool at_key)
{
    const struct troupe_json_path *steps[PATH_DEPTH_MAX];
    struct cursor cursor = {positions->text, positions->length, {0, 1, 1}};
    struct troupe_place last, key_place;
    int depth = 0, next = 0, inside;

    for (; path != NULL && depth < PATH_DEPTH_MAX; path = path->parent)
        steps[PATH_DEPTH_MAX - ++depth] = path;
    next = PATH_DEPTH_MAX - depth;
    /* Inside a node the walk starts at the node, so that many errors stay cheap. */
    inside = path_enter_node(positions, steps + next, depth);
    if (inside > 0) {
        cursor.place = positions->nodes[steps[next + inside - 1]->index];
        next += inside;
    } else {
        cursor_skip_space(&cursor);
    }
    last = key_place = cursor.place;
    for (; next < PATH_DEPTH_MAX; next++) {
        if (!cursor_follow(&cursor, steps[next], &key_place))
            return last;
        last = cursor.place;
    }
    return at_key ? key_place : last;
}
