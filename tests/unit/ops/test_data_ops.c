/* IdxDataset: batches, order, shards, the end of the sequence, and files that are not right. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "op_node.h"
#include "ops/tensor.h"

#define ROWS 10

static char folder[64], images_path[96], labels_path[96];

static void put_u32(unsigned char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void write_file(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
}

/* Image n is 2 by 3 pixels of 20 n, ..., 20 n + 5; its label is n. */
#define IMAGES_SIZE (16 + ROWS * 6)
#define LABELS_SIZE (8 + ROWS)
static unsigned char images[IMAGES_SIZE], labels[LABELS_SIZE];

static void make_files(void)
{
    snprintf(folder, sizeof(folder), "/tmp/troupe_idx_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(images_path, sizeof(images_path), "%s/images", folder);
    snprintf(labels_path, sizeof(labels_path), "%s/labels", folder);
    put_u32(images, 0x803);
    put_u32(images + 4, ROWS);
    put_u32(images + 8, 2);
    put_u32(images + 12, 3);
    put_u32(labels, 0x801);
    put_u32(labels + 4, ROWS);
    for (int i = 0; i < ROWS; i++) {
        labels[8 + i] = (unsigned char)i;
        for (int j = 0; j < 6; j++)
            images[16 + 6 * i + j] = (unsigned char)(20 * i + j);
    }
    write_file(images_path, images, IMAGES_SIZE);
    write_file(labels_path, labels, LABELS_SIZE);
}

static void drop_files(void)
{
    (void)unlink(images_path);
    (void)unlink(labels_path);
    (void)rmdir(folder);
}

static enum troupe_status dataset_init(struct op_node *node, const char *more)
{
    char attr[512];
    const char *none[] = {NULL};
    snprintf(attr, sizeof(attr), "\"images\": \"%s\", \"labels\": \"%s\", %s", images_path,
             labels_path, more);
    return op_node_init(node, "IdxDataset", none, attr, OP_KNOWS_VALUES);
}

static void dataset_make(struct op_node *node, const char *more)
{
    cr_assert_eq(dataset_init(node, more), TROUPE_OK, "%s", troupe_status_message());
}

/* Takes the next batch, checks that each image is its label's, and adds the labels to `out`. */
static int take(struct op_node *node, int *out)
{
    cr_assert_eq(op_node_call(node, 0), TROUPE_OK, "%s", troupe_status_message());
    int rows = (int)node->outputs[1]->elements;
    const int32_t *label = troupe_tensor_data(node->outputs[1]);
    const float *pixel = troupe_tensor_data(node->outputs[0]);
    cr_assert_eq(node->outputs[0]->rank, 2);
    cr_assert_eq(node->outputs[0]->dims[0], rows);
    cr_assert_eq(node->outputs[0]->dims[1], 6);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < 6; j++)
            cr_assert_eq(pixel[6 * i + j], (float)(20 * label[i] + j) / 255.0f);
        out[i] = label[i];
    }
    return rows;
}

static void expect_labels(struct op_node *node, int count, const int *wanted)
{
    int got[ROWS * 4];
    cr_assert_eq(take(node, got), count);
    for (int i = 0; i < count; i++)
        cr_assert_eq(got[i], wanted[i], "row %d is %d, wants %d", i, got[i], wanted[i]);
}

TestSuite(data, .init = make_files, .fini = drop_files);

Test(data, repeats_across_epochs)
{
    struct op_node node;
    dataset_make(&node, "\"batch\": 4");
    cr_assert_eq(node.node->output_shapes[0].dims[0], 4);
    expect_labels(&node, 4, (int[]){0, 1, 2, 3});
    expect_labels(&node, 4, (int[]){4, 5, 6, 7});
    expect_labels(&node, 4, (int[]){8, 9, 0, 1});
    expect_labels(&node, 4, (int[]){2, 3, 4, 5});
    op_node_fini(&node);
    dataset_make(&node, "\"batch\": 12");
    expect_labels(&node, 12, (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1});
    op_node_fini(&node);
}

Test(data, ends)
{
    struct op_node node;
    dataset_make(&node, "\"batch\": 4, \"repeat\": false");
    expect_labels(&node, 4, (int[]){0, 1, 2, 3});
    expect_labels(&node, 4, (int[]){4, 5, 6, 7});
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OUT_OF_RANGE);
        cr_assert_str_eq(troupe_status_message(), "end of sequence after 10 examples");
    }
    op_node_fini(&node);

    dataset_make(&node, "\"batch\": 4, \"repeat\": false, \"drop_remainder\": false");
    cr_assert_eq(node.node->output_shapes[0].dims[0], TROUPE_DIM_UNKNOWN);
    expect_labels(&node, 4, (int[]){0, 1, 2, 3});
    expect_labels(&node, 4, (int[]){4, 5, 6, 7});
    expect_labels(&node, 2, (int[]){8, 9});
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OUT_OF_RANGE);
    op_node_fini(&node);
}

Test(data, shapes_and_scale)
{
    struct op_node node;
    dataset_make(&node, "\"batch\": 1, \"flatten\": false, \"normalize\": false");
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
    cr_assert_eq(op_node_call(&node, 1), TROUPE_OK);
    op_expect(node.outputs[0], "float32 [[[20, 21, 22], [23, 24, 25]]]", 0, "images");
    op_expect(node.outputs[1], "int32 [1]", 0, "labels");
    op_node_fini(&node);
}

/* Each epoch has every row once, in an order that the seed and the epoch give. */
Test(data, shuffles)
{
    struct op_node node;
    int orders[2][3][ROWS];
    for (int run = 0; run < 2; run++) {
        dataset_make(&node, "\"batch\": 10, \"shuffle\": true, \"seed\": 3");
        for (int epoch = 0; epoch < 3; epoch++) {
            unsigned seen = 0;
            cr_assert_eq(take(&node, orders[run][epoch]), ROWS);
            for (int i = 0; i < ROWS; i++)
                seen |= 1u << orders[run][epoch][i];
            cr_assert_eq(seen, (1u << ROWS) - 1);
        }
        op_node_fini(&node);
    }
    cr_assert_eq(memcmp(orders[0], orders[1], sizeof(orders[0])), 0, "the same seed");
    cr_assert_neq(memcmp(orders[0][0], orders[0][1], sizeof(orders[0][0])), 0, "another epoch");
    int sorted[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, other[ROWS];
    cr_assert_neq(memcmp(orders[0][0], sorted, sizeof(sorted)), 0);
    dataset_make(&node, "\"batch\": 10, \"shuffle\": true, \"seed\": 4");
    cr_assert_eq(take(&node, other), ROWS);
    cr_assert_neq(memcmp(orders[0][0], other, sizeof(other)), 0, "another seed");
    op_node_fini(&node);
    /* Batches that straddle the epochs cut the same sequence. */
    dataset_make(&node, "\"batch\": 6, \"shuffle\": true, \"seed\": 3");
    for (int begin = 0; begin < 3 * ROWS; begin += 6)
        expect_labels(&node, 6, orders[0][0] + begin);
    op_node_fini(&node);
}

/* The shards of each batch, one behind the other, are the batch of one process. */
Test(data, shards_make_up_the_batch)
{
    for (int count = 1; count <= 4; count++) {
        struct op_node whole, shards[4];
        dataset_make(&whole, "\"batch\": 7, \"shuffle\": true");
        for (int i = 0; i < count; i++) {
            char more[128];
            snprintf(more, sizeof(more),
                     "\"batch\": 7, \"shuffle\": true, \"shard_index\": %d, \"shard_count\": %d", i,
                     count);
            dataset_make(&shards[i], more);
        }
        for (int step = 0; step < 5; step++) {
            int wanted[7], got[7], rows = 0;
            cr_assert_eq(take(&whole, wanted), 7);
            for (int i = 0; i < count; i++) {
                int size = take(&shards[i], got + rows);
                cr_assert_eq(size, 7 / count + (i < 7 % count), "shard %d of %d", i, count);
                rows += size;
            }
            cr_assert_eq(rows, 7);
            cr_assert_eq(memcmp(wanted, got, sizeof(got)), 0, "step %d of %d shards", step, count);
        }
        op_node_fini(&whole);
        for (int i = 0; i < count; i++)
            op_node_fini(&shards[i]);
    }
}

static void write_gzip(const char *path, const unsigned char *bytes, unsigned size)
{
    gzFile file = gzopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(gzwrite(file, bytes, size), (int)size);
    cr_assert_eq(gzclose(file), Z_OK);
}

Test(data, reads_gzip)
{
    struct op_node node;
    write_gzip(images_path, images, IMAGES_SIZE);
    write_gzip(labels_path, labels, LABELS_SIZE);
    dataset_make(&node, "\"batch\": 4");
    expect_labels(&node, 4, (int[]){0, 1, 2, 3});
    op_node_fini(&node);
}

/* Expects that the dataset cannot be made: a message that begins with the file and a text. */
static void expect_bad(enum troupe_status wanted, const char *path, const char *text)
{
    struct op_node node;
    char message[256];
    dataset_make(&node, "\"batch\": 4");
    enum troupe_status status = op_node_call(&node, 0);
    snprintf(message, sizeof(message), "%s%s", path, text);
    cr_assert_eq(status, wanted, "got %s (%s), wants %s", troupe_status_name(status),
                 troupe_status_message(), message);
    cr_assert_str_eq(troupe_status_message(), message);
    op_node_fini(&node);
}

Test(data, refuses_bad_files)
{
    unsigned char bad[IMAGES_SIZE + 1];
    write_file(images_path, images, IMAGES_SIZE - 1);
    expect_bad(TROUPE_DATA_LOSS, images_path, ": wants 60 bytes of data, has 59");
    memcpy(bad, images, IMAGES_SIZE);
    bad[IMAGES_SIZE] = 0;
    write_file(images_path, bad, IMAGES_SIZE + 1);
    expect_bad(TROUPE_DATA_LOSS, images_path,
               ": has more than the 60 bytes of data that its header announces");
    write_file(images_path, images, 0);
    expect_bad(TROUPE_DATA_LOSS, images_path, ": wants an idx header of 16 bytes, has 0");
    write_file(images_path, labels, LABELS_SIZE);
    expect_bad(TROUPE_DATA_LOSS, images_path,
               ": wants an idx file of unsigned bytes with 3 dimensions (magic 0x00000803), got "
               "magic 0x00000801");
    for (uint32_t size = 0; size <= 0xffffffff - 1; size += 0xffffffff - 1) {
        char text[160];
        put_u32(bad + 8, size);
        put_u32(bad + 12, size ? size : 3);
        write_file(images_path, bad, IMAGES_SIZE);
        snprintf(text, sizeof(text),
                 ": dimension 1 is %u: wants 1 or more, and at most 4294967296 bytes in all", size);
        expect_bad(TROUPE_DATA_LOSS, images_path, text);
        if (size)
            break;
    }
}

Test(data, refuses_files_that_do_not_agree)
{
    char text[160];
    put_u32(labels + 4, ROWS - 1);
    write_file(labels_path, labels, LABELS_SIZE - 1);
    snprintf(text, sizeof(text), " has 10 images and %s has 9 labels", labels_path);
    expect_bad(TROUPE_DATA_LOSS, images_path, text);
    cr_assert_eq(unlink(labels_path), 0);
    expect_bad(TROUPE_NOT_FOUND, labels_path, ": No such file or directory");
    cr_assert_eq(unlink(images_path), 0);
    snprintf(images_path, sizeof(images_path), "%s", folder);
    expect_bad(TROUPE_DATA_LOSS, folder,
               ": wants an idx header of 16 bytes, has 0 (Is a directory)");
}

static unsigned char *read_back(const char *path, size_t *size)
{
    static unsigned char bytes[4096];
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    *size = fread(bytes, 1, sizeof(bytes), file);
    cr_assert_eq(fclose(file), 0);
    return bytes;
}

Test(data, refuses_damaged_gzip)
{
    size_t size;
    write_gzip(images_path, images, IMAGES_SIZE);
    unsigned char *bytes = read_back(images_path, &size);
    write_file(images_path, bytes, size - 3);
    expect_bad(TROUPE_DATA_LOSS, images_path, ": the file is damaged (unexpected end of file)");
    bytes[size - 8] ^= 1; /* of the checksum */
    write_file(images_path, bytes, size);
    /* zlib unpacks a file this short at once, and gives nothing of it. */
    expect_bad(TROUPE_DATA_LOSS, images_path,
               ": wants an idx header of 16 bytes, has 0 (incorrect data check)");
}

static void expect_refused(const char *more, const char *message)
{
    struct op_node node;
    cr_assert_eq(dataset_init(&node, more), TROUPE_INVALID_ARGUMENT, "%s", more);
    cr_assert(strstr(troupe_status_message(), message), "got \"%s\", wants \"%s\"",
              troupe_status_message(), message);
    op_node_fini(&node);
}

Test(data, refuses_wrong_attrs)
{
    struct op_node node;
    expect_refused("\"batch\": 0", "batch");
    expect_refused("\"batch\": 4, \"shard_index\": 2, \"shard_count\": 2",
                   "shard_index is 2 of shard_count 2: wants 0 to count - 1");
    expect_refused("\"batch\": 4, \"shard_index\": -1", "shard_index is -1 of shard_count 1");
    expect_refused("\"batch\": 2, \"shard_count\": 3",
                   "batch is 2 for 3 shards: wants a row for each");
    dataset_make(&node, "\"batch\": 11, \"repeat\": false");
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(troupe_status_message(), "batch is 11 and "));
    op_node_fini(&node);
    dataset_make(&node, "\"batch\": 9223372036854775807");
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(troupe_status_message(), "no tensor holds as many images"));
    op_node_fini(&node);
}
