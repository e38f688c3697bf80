/* Tensors as JSON literals: nested lists of numbers, bools or strings. */
#ifndef TROUPE_GRAPH_LITERAL_H
#define TROUPE_GRAPH_LITERAL_H

#include <stdbool.h>

#include <jansson.h>

#include "troupe/tensor.h"

/* Reads a scalar or a nested list as a tensor of `dtype`; INVALID takes float32 when there is a
 * number with a fraction (or no element at all), else int32, bool or string, as the elements say.
 * A floating element may also be "NaN", "Infinity" or "-Infinity". INVALID_ARGUMENT for a ragged
 * list, more than TROUPE_RANK_MAX levels, an element that does not fit. The caller owns `*out`. */
TROUPE_MUST_USE enum troupe_status
troupe_tensor_from_json(const json_t *json, enum troupe_dtype dtype, struct troupe_tensor **out);
/* As troupe_tensor_from_json, from the text of one literal; INVALID_ARGUMENT for broken JSON. */
TROUPE_MUST_USE enum troupe_status
troupe_tensor_from_json_text(const char *text, enum troupe_dtype dtype, struct troupe_tensor **out);

/* The literal of a tensor, to be given back with json_decref; NULL, with the message set, when
 * there is no memory, a string is not UTF-8, or it is a resource. A list of tensors (variant) is a
 * list of their literals, null for one that is not set. float32 and the 16-bit formats are given by
 * the shortest decimal that reads back as the same value. */
TROUPE_MUST_USE json_t *troupe_tensor_to_json(const struct troupe_tensor *tensor);

/* A JSON value in few characters, for messages. */
#define TROUPE_JSON_TEXT_MAX 64
const char *troupe_json_describe(const json_t *json, char out[TROUPE_JSON_TEXT_MAX]);

/* Reads a number, or "NaN", "Infinity", "-Infinity", as a double; false for another value. */
TROUPE_MUST_USE bool troupe_json_number(const json_t *json, double *out);

#endif
