/* Tensors from and into JSON text and .npy files: the public names of what graph/ has. */
#include <jansson.h>

#include "graph/literal.h"
#include "graph/npy.h"
#include "troupe/session.h"

enum troupe_status troupe_tensor_parse(const char *json, enum troupe_dtype dtype,
                                       struct troupe_tensor **out)
{
    return troupe_tensor_from_json_text(json, dtype, out);
}

enum troupe_status troupe_tensor_load(const char *path, struct troupe_tensor **out)
{
    return troupe_npy_read(path, out);
}

enum troupe_status troupe_tensor_save(const struct troupe_tensor *tensor, const char *path)
{
    return troupe_npy_write(path, tensor);
}

enum troupe_status troupe_tensor_print(const struct troupe_tensor *tensor, char **out)
{
    json_t *value = troupe_tensor_to_json(tensor);
    if (!value) /* the message says why */
        return troupe_dtype_is_counted(troupe_tensor_dtype(tensor)) ? TROUPE_INVALID_ARGUMENT
                                                                    : TROUPE_RESOURCE_EXHAUSTED;
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    json_decref(value);
    if (!text)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a tensor as JSON");
    *out = text;
    return TROUPE_OK;
}
