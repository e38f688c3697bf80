/* Reading idx files. Invariant: no size is believed before it is checked against a limit. */
#include "ops/kernels/idx_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"

/* The most bytes that a file may announce: 4 GiB. */
#define TROUPE_IDX_BYTES_MAX (INT64_C(1) << 32)
/* The type code of unsigned bytes. */
#define TROUPE_IDX_UBYTE 0x08
/* The longest text on why a read failed. */
#define TROUPE_IDX_TROUBLE_MAX 160

static int64_t read_u32(const unsigned char *in)
{
    return (int64_t)in[0] << 24 | (int64_t)in[1] << 16 | (int64_t)in[2] << 8 | (int64_t)in[3];
}

/* Reads up to `bytes`; returns how many came before the end or an error of the file. */
static int64_t read_bytes(gzFile file, unsigned char *out, int64_t bytes)
{
    int64_t done = 0;
    while (done < bytes) {
        int64_t rest = bytes - done;
        int got = gzread(file, out + done, (unsigned)(rest < (1 << 20) ? rest : 1 << 20));
        if (got <= 0)
            break;
        done += got;
    }
    return done;
}

/* Why no more bytes come: " (Is a directory)", " (unexpected end of file)", "" at a clean end. */
static const char *read_trouble(gzFile file, const char *path, char *out, size_t size)
{
    int code, cause = errno;
    const char *text = gzerror(file, &code);
    size_t length = strlen(path);
    if (code == Z_OK || code == Z_STREAM_END)
        return "";
    if (code == Z_ERRNO)
        text = strerror(cause);
    else if (strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2; /* the message has the path before it already */
    snprintf(out, size, " (%s)", text);
    return out;
}

static enum troupe_status read_header(gzFile file, const char *path, int rank,
                                      struct troupe_idx_file *out)
{
    unsigned char header[4 + 4 * TROUPE_IDX_RANK_MAX];
    char trouble[TROUPE_IDX_TROUBLE_MAX];
    int64_t wanted = 4 + 4 * rank, got = read_bytes(file, header, wanted);
    if (got < wanted)
        return troupe_status_fail(
            TROUPE_DATA_LOSS, "%s: wants an idx header of %lld bytes, has %lld%s", path,
            (long long)wanted, (long long)got, read_trouble(file, path, trouble, sizeof(trouble)));
    if (header[0] != 0 || header[1] != 0 || header[2] != TROUPE_IDX_UBYTE || header[3] != rank)
        return troupe_status_fail(TROUPE_DATA_LOSS,
                                  "%s: wants an idx file of unsigned bytes with %d dimensions "
                                  "(magic 0x%08x), got magic 0x%08llx",
                                  path, rank, TROUPE_IDX_UBYTE << 8 | rank,
                                  (unsigned long long)read_u32(header));
    int64_t bytes = 1;
    out->rank = rank;
    for (int i = 0; i < rank; i++) {
        out->dims[i] = read_u32(header + 4 + (size_t)4 * (size_t)i);
        if (out->dims[i] < 1 || out->dims[i] > TROUPE_IDX_BYTES_MAX / bytes)
            return troupe_status_fail(TROUPE_DATA_LOSS,
                                      "%s: dimension %d is %lld: wants 1 or more, and at most %lld "
                                      "bytes in all",
                                      path, i, (long long)out->dims[i],
                                      (long long)TROUPE_IDX_BYTES_MAX);
        bytes *= out->dims[i];
    }
    out->bytes = (size_t)bytes;
    return TROUPE_OK;
}

/* Memory grows with what is there, not with what the header says. */
static enum troupe_status read_data(gzFile file, const char *path, struct troupe_idx_file *out)
{
    size_t capacity = 0, used = 0;
    char trouble[TROUPE_IDX_TROUBLE_MAX];
    while (used < out->bytes) {
        size_t larger = capacity ? 2 * capacity : 1 << 20;
        if (larger > out->bytes)
            larger = out->bytes;
        unsigned char *grown = troupe_reallocarray(out->data, larger, 1);
        if (!grown)
            return TROUPE_RESOURCE_EXHAUSTED;
        out->data = grown;
        capacity = larger;
        used += (size_t)read_bytes(file, out->data + used, (int64_t)(capacity - used));
        if (used < capacity)
            return troupe_status_fail(TROUPE_DATA_LOSS, "%s: wants %zu bytes of data, has %zu%s",
                                      path, out->bytes, used,
                                      read_trouble(file, path, trouble, sizeof(trouble)));
    }
    unsigned char more;
    int64_t rest = read_bytes(file, &more, 1);
    /* The checksum of a gzip file is behind its data. */
    const char *wrong = read_trouble(file, path, trouble, sizeof(trouble));
    if (rest == 0 && *wrong)
        return troupe_status_fail(TROUPE_DATA_LOSS, "%s: the file is damaged%s", path, wrong);
    if (rest > 0)
        return troupe_status_fail(TROUPE_DATA_LOSS,
                                  "%s: has more than the %zu bytes of data that "
                                  "its header announces",
                                  path, out->bytes);
    return TROUPE_OK;
}

enum troupe_status troupe_idx_file_read(const char *path, int rank, struct troupe_idx_file *out)
{
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file)
        return troupe_status_fail(errno == EACCES ? TROUPE_PERMISSION_DENIED : TROUPE_NOT_FOUND,
                                  "%s: %s", path, errno ? strerror(errno) : "no memory");
    struct troupe_idx_file result = {0};
    enum troupe_status status = read_header(file, path, rank, &result);
    if (status == TROUPE_OK)
        status = read_data(file, path, &result);
    gzclose(file);
    if (status != TROUPE_OK) {
        troupe_idx_file_fini(&result);
        return status;
    }
    *out = result;
    return TROUPE_OK;
}

void troupe_idx_file_fini(struct troupe_idx_file *file)
{
    free(file->data);
    file->data = NULL;
}
