/* Sources of data: IdxDataset. Invariant: the position counts global batches, and every shard of a
 * batch is cut from the same order of rows, so that the shards' union is the batch of one process.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/philox.h"
#include "ops/families.h"
#include "ops/kernel.h"
#include "ops/kernels/idx_file.h"
#include "ops/tensor.h"

struct idx_dataset {
    struct troupe_resource resource;
    pthread_mutex_t lock; /* guards all below it */
    int64_t position;     /* the next global batch */
    int64_t epoch;        /* whose order `rows` is, -1 for none */
    int64_t *rows;        /* of a shuffled epoch */
    struct troupe_idx_file images, labels;
    int64_t count, pixels;
};

static void dataset_destroy(struct troupe_resource *resource)
{
    struct idx_dataset *dataset = troupe_container_of(resource, struct idx_dataset, resource);
    troupe_idx_file_fini(&dataset->images);
    troupe_idx_file_fini(&dataset->labels);
    pthread_mutex_destroy(&dataset->lock);
    free(dataset->rows);
    free(dataset);
}

static enum troupe_status load(const struct troupe_kernel *kernel, struct idx_dataset *dataset)
{
    const char *images = troupe_kernel_attr(kernel, "images")->value.s;
    const char *labels = troupe_kernel_attr(kernel, "labels")->value.s;
    enum troupe_status status = troupe_idx_file_read(images, 3, &dataset->images);
    if (status == TROUPE_OK)
        status = troupe_idx_file_read(labels, 1, &dataset->labels);
    if (status != TROUPE_OK)
        return status;
    dataset->count = dataset->images.dims[0];
    dataset->pixels = dataset->images.dims[1] * dataset->images.dims[2];
    if (dataset->labels.dims[0] != dataset->count)
        return troupe_status_fail(TROUPE_DATA_LOSS, "%s has %lld images and %s has %lld labels",
                                  images, (long long)dataset->count, labels,
                                  (long long)dataset->labels.dims[0]);
    int64_t batch = troupe_kernel_int(kernel, "batch");
    bool wants_whole =
        !troupe_kernel_bool(kernel, "repeat") && troupe_kernel_bool(kernel, "drop_remainder");
    if (wants_whole && batch > dataset->count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "batch is %lld and %s has %lld images: wants at most those, or "
                                  "repeat, or no drop_remainder",
                                  (long long)batch, images, (long long)dataset->count);
    if (batch > INT64_MAX / 64 / dataset->pixels)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "batch is %lld: no tensor holds as many images",
                                  (long long)batch);
    if (!troupe_kernel_bool(kernel, "shuffle"))
        return TROUPE_OK;
    dataset->rows = troupe_calloc((size_t)dataset->count, sizeof(*dataset->rows));
    return dataset->rows ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

static enum troupe_status dataset_create(const struct troupe_kernel *kernel,
                                         struct troupe_resource **out)
{
    struct idx_dataset *dataset = troupe_calloc(1, sizeof(*dataset));
    if (!dataset)
        return TROUPE_RESOURCE_EXHAUSTED;
    dataset->resource.destroy = dataset_destroy;
    dataset->epoch = -1;
    pthread_mutex_init(&dataset->lock, NULL);
    enum troupe_status status = load(kernel, dataset);
    if (status != TROUPE_OK) {
        dataset_destroy(&dataset->resource);
        return status;
    }
    *out = &dataset->resource;
    return TROUPE_OK;
}

/* The order of an epoch: Fisher and Yates' shuffle with numbers of (seed, epoch, index). */
static void shuffle_locked(struct idx_dataset *dataset, uint64_t seed, int64_t epoch)
{
    if (dataset->epoch == epoch)
        return;
    for (int64_t i = 0; i < dataset->count; i++)
        dataset->rows[i] = i;
    for (int64_t i = dataset->count - 1; i > 0; i--) {
        uint32_t bits[4];
        troupe_philox(seed, (uint64_t)i, (uint64_t)epoch, bits);
        uint64_t wide = (uint64_t)bits[0] << 32 | bits[1];
        int64_t j = (int64_t)(wide % (uint64_t)(i + 1));
        int64_t row = dataset->rows[i];
        dataset->rows[i] = dataset->rows[j];
        dataset->rows[j] = row;
    }
    dataset->epoch = epoch;
}

/* The rows [begin, end) of all epochs' sequence that a shard takes of a global batch. */
struct share {
    int64_t begin, end;
};

static struct share share_of(int64_t begin, int64_t size, int64_t index, int64_t count)
{
    int64_t base = size / count, extra = size % count;
    int64_t first = begin + index * base + (index < extra ? index : extra);
    return (struct share){first, first + base + (index < extra ? 1 : 0)};
}

static enum troupe_status end_of_sequence(const struct idx_dataset *dataset)
{
    return troupe_status_fail(TROUPE_OUT_OF_RANGE, "end of sequence after %lld examples",
                              (long long)dataset->count);
}

/* Takes the next global batch and this shard's share of it. */
static enum troupe_status next_share_locked(const struct troupe_kernel *kernel,
                                            struct idx_dataset *dataset, struct share *out)
{
    int64_t batch = troupe_kernel_int(kernel, "batch");
    int64_t begin = dataset->position * batch, size = batch;
    if (!troupe_kernel_bool(kernel, "repeat")) {
        int64_t rest = dataset->count - begin;
        if (rest < batch && troupe_kernel_bool(kernel, "drop_remainder"))
            rest = 0;
        if (rest <= 0)
            return end_of_sequence(dataset);
        size = rest < batch ? rest : batch;
    }
    dataset->position++;
    *out = share_of(begin, size, troupe_kernel_int(kernel, "shard_index"),
                    troupe_kernel_int(kernel, "shard_count"));
    return TROUPE_OK;
}

static void copy_row(const struct idx_dataset *dataset, int64_t row, bool normalize, float *image,
                     int32_t *label)
{
    const unsigned char *pixels = dataset->images.data + row * dataset->pixels;
    const float scale = normalize ? 255.0f : 1.0f;
    for (int64_t i = 0; i < dataset->pixels; i++)
        image[i] = (float)pixels[i] / scale;
    *label = dataset->labels.data[row];
}

static enum troupe_status make_outputs(struct troupe_kernel_call *call,
                                       const struct idx_dataset *dataset, int64_t rows,
                                       struct troupe_tensor **images, struct troupe_tensor **labels)
{
    bool flatten = troupe_kernel_bool(call->kernel, "flatten");
    int64_t dims[3] = {rows, flatten ? dataset->pixels : dataset->images.dims[1],
                       dataset->images.dims[2]};
    enum troupe_status status = troupe_call_output(call, 0, flatten ? 2 : 3, dims, images);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 1, 1, dims, labels);
    return status;
}

static enum troupe_status compute_idx_dataset(struct troupe_kernel_call *call)
{
    const struct troupe_kernel *kernel = call->kernel;
    struct idx_dataset *dataset =
        troupe_container_of(kernel->own_resource, struct idx_dataset, resource);
    struct troupe_tensor *images, *labels;
    struct share share = {0, 0};
    pthread_mutex_lock(&dataset->lock);
    enum troupe_status status = next_share_locked(kernel, dataset, &share);
    if (status == TROUPE_OK)
        status = make_outputs(call, dataset, share.end - share.begin, &images, &labels);
    for (int64_t i = share.begin; status == TROUPE_OK && i < share.end; i++) {
        int64_t epoch = i / dataset->count, row = i % dataset->count;
        if (dataset->rows) {
            shuffle_locked(dataset, (uint64_t)troupe_kernel_int(kernel, "seed") ^ kernel->seed,
                           epoch);
            row = dataset->rows[row];
        }
        int64_t at = i - share.begin;
        copy_row(dataset, row, troupe_kernel_bool(kernel, "normalize"),
                 (float *)troupe_tensor_data_mutable(images) + at * dataset->pixels,
                 (int32_t *)troupe_tensor_data_mutable(labels) + at);
    }
    pthread_mutex_unlock(&dataset->lock);
    return status;
}

/* The rows are known unless the last batch may be short; the pixels only when the file is read. */
static enum troupe_status infer_idx_dataset(struct troupe_infer *infer)
{
    int64_t batch = troupe_infer_int(infer, "batch");
    int64_t index = troupe_infer_int(infer, "shard_index");
    int64_t count = troupe_infer_int(infer, "shard_count");
    if (index < 0 || count < 1 || index >= count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "shard_index is %lld of shard_count %lld: wants 0 to count - 1",
                                  (long long)index, (long long)count);
    if (batch < count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "batch is %lld for %lld shards: wants a row for each",
                                  (long long)batch, (long long)count);
    bool is_full = troupe_infer_bool(infer, "repeat") || troupe_infer_bool(infer, "drop_remainder");
    if (!is_full && count > 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a last batch that may be short is not sharded: set repeat or "
                                  "drop_remainder");
    struct share share = share_of(0, batch, index, count);
    int64_t dims[3] = {is_full ? share.end - share.begin : TROUPE_DIM_UNKNOWN, TROUPE_DIM_UNKNOWN,
                       TROUPE_DIM_UNKNOWN};
    infer->output_shapes[0] = troupe_shape_make(troupe_infer_bool(infer, "flatten") ? 2 : 3, dims);
    infer->output_shapes[1] = troupe_shape_make(1, dims);
    return TROUPE_OK;
}

static const struct troupe_kernel_row idx_dataset_kernels[] = {
    {.device = "CPU", .compute = compute_idx_dataset}};

const struct troupe_op troupe_ops_data[] = {
    {.name = "IdxDataset",
     .doc = "The next batch of an MNIST-like pair of idx files, plain or gzip: images in [0, 1] "
            "(normalize) as rows, and labels.",
     .inputs = "",
     .outputs = "images: float32, labels: int32",
     .attrs = "images: string; labels: string; batch: int >= 1; shuffle: bool = false; "
              "seed: int = 0; repeat: bool = true; drop_remainder: bool = true; "
              "shard_index: int = 0; shard_count: int = 1; normalize: bool = true; "
              "flatten: bool = true",
     .flags = TROUPE_OP_STATEFUL | TROUPE_OP_SOURCE | TROUPE_OP_SHARDED,
     .infer = infer_idx_dataset,
     .no_gradient = "it has no inputs",
     .kernels = idx_dataset_kernels,
     .kernel_count = 1,
     .resource_create = dataset_create},
};
const size_t troupe_ops_data_count = sizeof(troupe_ops_data) / sizeof(troupe_ops_data[0]);
