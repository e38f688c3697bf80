/* Runs a fuzz target over the files given, and fails when there are none. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 20);
    size_t size;

    if (file == NULL || bytes == NULL) {
        perror(path);
        exit(1);
    }
    size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    /* A copy of the exact size, so that a sanitizer sees the first byte read beyond it. */
    bytes = realloc(bytes, size > 0 ? size : 1);
    (void)LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return 1;
}

int main(int count, char **paths)
{
    int done = 0;

    for (int i = 1; i < count; i++)
        done += replay(paths[i]);
    printf("%d inputs\n", done);
    return done > 0 ? 0 : 1;
}
