/* Device names and split loops. */
#include <criterion/criterion.h>
#include <string.h>

#include "devices/device.h"

static struct troupe_device_spec spec(const char *name)
{
    struct troupe_device_spec out;
    cr_assert_eq(troupe_device_spec_parse(name, &out), TROUPE_OK, "%s", name);
    return out;
}

static void expect_print(const char *name, const char *right)
{
    char text[200];
    struct troupe_device_spec read = spec(name);
    cr_assert_str_eq(troupe_device_spec_print(&read, text, sizeof(text)), right);
}

Test(spec, parts)
{
    struct troupe_device_spec all = spec("/job:ps/task:12/device:CPU:3");
    cr_assert_str_eq(all.job, "ps");
    cr_assert_eq(all.task, 12);
    cr_assert_str_eq(all.type, "CPU");
    cr_assert_eq(all.index, 3);
    struct troupe_device_spec none = spec("");
    cr_assert_str_eq(none.job, "");
    cr_assert_str_eq(none.type, "");
    cr_assert(none.task == -1 && none.index == -1);
}

Test(spec, prints_what_it_read)
{
    expect_print("/job:ps/task:12/device:CPU:3", "/job:ps/task:12/device:CPU:3");
    expect_print("/task:1", "/task:1");
    expect_print("cpu:0", "/device:CPU:0");
    expect_print("/device:CPU:*", "/device:CPU");
    expect_print("/device:CPU/job:a", "/job:a/device:CPU");
    expect_print("/job:localhost/replica:0/task:0/device:CPU:0",
                 "/job:localhost/task:0/device:CPU:0");
    expect_print("", "");
}

Test(spec, refuses)
{
    const char *const wrong[] = {"/jib:ps",
                                 "/job:",
                                 "/job:a/job:b",
                                 "/task:x",
                                 "/task:-1",
                                 "/task:99999999999",
                                 "/device:",
                                 "/device:CPU:",
                                 "/device:CPU:0/",
                                 "ps",
                                 "CPU:0/task:1",
                                 "/device:CPU:0x",
                                 "/device:0:0",
                                 "/replica:1",
                                 "/job:a b",
                                 "/task:1task:",
                                 "/device:ABCDEFGHIJKLMNOPQRST:0"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct troupe_device_spec out = {.task = 77};
        cr_assert_eq(troupe_device_spec_parse(wrong[i], &out), TROUPE_INVALID_ARGUMENT, "%s",
                     wrong[i]);
        cr_assert(strstr(troupe_status_message(), wrong[i]));
        cr_assert(strstr(troupe_status_message(), "/job:NAME/task:N/device:TYPE:N"));
        cr_assert_eq(out.task, 77);
    }
}

Test(spec, fits)
{
    struct troupe_device_spec have = spec("/job:w/task:1/device:CPU:0");
    const char *const right[] = {"", "/job:w", "/task:1", "CPU:0", "/device:CPU"};
    const char *const wrong[] = {"/job:ps", "/task:0", "CPU:1", "/device:GPU", "/job:ww"};
    for (size_t i = 0; i < 5; i++) {
        struct troupe_device_spec a = spec(right[i]), b = spec(wrong[i]);
        cr_assert(troupe_device_spec_fits(&a, &have), "%s", right[i]);
        cr_assert_not(troupe_device_spec_fits(&b, &have), "%s", wrong[i]);
    }
}

Test(spec, merges)
{
    struct troupe_device_spec a = spec("/job:w/device:CPU"), b = spec("/task:2/device:CPU:1");
    struct troupe_device_spec merged, other = spec("/job:ps");
    char text[200];
    cr_assert_eq(troupe_device_spec_merge(&a, &b, &merged), TROUPE_OK);
    cr_assert_str_eq(troupe_device_spec_print(&merged, text, sizeof(text)),
                     "/job:w/task:2/device:CPU:1");
    cr_assert_eq(troupe_device_spec_merge(&a, &other, &merged), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(merged.job, "w");
}

static void mark(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        ((int *)context)[i]++;
}

/* Splits into ranges of `grain`, in order. */
static void run_ranges(struct troupe_parallel *self, int64_t total, int64_t grain,
                       void (*body)(void *context, int64_t begin, int64_t end), void *context)
{
    (void)self;
    for (int64_t at = 0; at < total; at += grain)
        body(context, at, at + grain < total ? at + grain : total);
}

Test(parallel, visits_each_index_once)
{
    struct troupe_parallel one = {1, run_ranges}, four = {4, run_ranges}, none = {4, NULL};
    struct troupe_parallel *all[] = {NULL, &one, &four, &none};
    for (size_t i = 0; i < 4; i++) {
        int seen[100] = {0};
        troupe_parallel_for(all[i], 100, 7, mark, seen);
        troupe_parallel_for(all[i], 0, 7, mark, seen);
        for (int j = 0; j < 100; j++)
            cr_assert_eq(seen[j], 1);
    }
}
