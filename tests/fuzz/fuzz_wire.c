/* Any bytes are a message between ranks that is whole or an error, never a crash, and what is a
 * tensor's header decodes to a tensor that encodes to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/census.h"
#include "coordinator/run.h"
#include "coordinator/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_header(const uint8_t *data, size_t size)
{
    unsigned char header[TROUPE_WIRE_TENSOR_HEADER] = {0}, again[TROUPE_WIRE_TENSOR_HEADER];
    struct troupe_wire_tensor said;
    struct troupe_tensor *tensor;

    memcpy(header, data, size < sizeof(header) ? size : sizeof(header));
    if (troupe_wire_decode_header(header, size, &said) != TROUPE_OK || said.dead)
        return;
    if (!troupe_shape_is_known(&said.shape))
        abort();
    /* Only small ones are made here: the receiver compares a size with the graph's first. */
    int64_t elements = troupe_shape_elements(&said.shape);
    if (elements < 0 || elements > 1000 ||
        troupe_tensor_create(said.dtype, said.shape.rank, said.shape.dims, &tensor) != TROUPE_OK)
        return;
    troupe_wire_encode_header(tensor, false, again);
    if (memcmp(header, again, 24 + 8 * (size_t)said.shape.rank) != 0)
        abort();
    troupe_tensor_unref(tensor);
}

static void try_failure(const uint8_t *data, size_t size)
{
    struct troupe_transport transport = {.size = 4};
    struct troupe_runtime runtime = {.transport = &transport};
    struct troupe_session session = {.runtime = &runtime};
    struct troupe_run_failure failure = {0};

    if (troupe_run_failure_read(data, size, &session, &failure) != TROUPE_OK && failure.is_set)
        abort();
    if (failure.is_set && (failure.rank < 0 || failure.rank >= 4 || failure.message == NULL))
        abort();
    free(failure.message);
}

/* A census is judged as it is, whatever it says, and means the same when it is sent again. */
static void try_census(const uint8_t *data, size_t size)
{
    struct troupe_census ranks[2];
    struct troupe_text text;

    if (troupe_census_read(data, size, &ranks[0]) != TROUPE_OK) {
        if (ranks[0].runs != NULL || ranks[0].causes != NULL)
            abort();
        return;
    }
    troupe_text_init(&text);
    troupe_census_put(&text, &ranks[0]);
    if (troupe_census_read(text.data, text.length, &ranks[1]) != TROUPE_OK ||
        troupe_census_activity(&ranks[0], 1, 0) != troupe_census_activity(&ranks[1], 1, 0))
        abort();
    if (troupe_census_is_quiet(ranks, 2))
        (void)troupe_census_is_deadlock(ranks, 2);
    troupe_text_fini(&text);
    troupe_census_fini(&ranks[0]);
    troupe_census_fini(&ranks[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct troupe_wire_reader reader;

    troupe_wire_reader_init(&reader, data, size);
    while (!reader.failed && reader.position < reader.bytes) {
        free(troupe_wire_get_string(&reader));
        (void)troupe_wire_get_u64(&reader);
    }
    try_header(data, size);
    try_failure(data, size);
    try_census(data, size);
    return 0;
}
