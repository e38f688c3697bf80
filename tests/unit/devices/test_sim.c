/* The simulated device: its memory, its streams, its events, and what it is told to be. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "devices/sim.h"

#define DEADLINE 20

static struct troupe_device *device(int index, const char *options_text)
{
    struct troupe_sim_options options;
    struct troupe_device *out;
    cr_assert_eq(troupe_sim_options_parse(options_text, &options), TROUPE_OK, "%s",
                 troupe_status_message());
    cr_assert_eq(troupe_sim_create(&options, index, &out), TROUPE_OK, "%s",
                 troupe_status_message());
    return out;
}

static struct troupe_stream *stream(struct troupe_device *on)
{
    struct troupe_stream *out;
    cr_assert_eq(troupe_stream_create(on, &out), TROUPE_OK);
    return out;
}

static void *alloc(struct troupe_device *on, size_t bytes)
{
    void *out;
    cr_assert_eq(troupe_device_alloc(on, bytes, &out), TROUPE_OK, "%s", troupe_status_message());
    return out;
}

/* Waits for a number of completions, and keeps what the last one said. */
struct news {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int count;
    enum troupe_status status;
    char message[300];
};
static struct news news_none(void)
{
    return (struct news){.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
}

static void tell(void *context, enum troupe_status status, const char *message)
{
    struct news *news = context;
    pthread_mutex_lock(&news->lock);
    news->count++;
    news->status = status;
    snprintf(news->message, sizeof(news->message), "%s", message);
    pthread_cond_signal(&news->came);
    pthread_mutex_unlock(&news->lock);
}

static enum troupe_status await(struct news *news, int count)
{
    pthread_mutex_lock(&news->lock);
    while (news->count < count)
        pthread_cond_wait(&news->came, &news->lock);
    pthread_mutex_unlock(&news->lock);
    return news->status;
}

static void copy(struct troupe_stream *on, struct troupe_copy copy, struct news *news)
{
    struct troupe_completion completion = {.done = news ? tell : NULL, .context = news};
    cr_assert_eq(troupe_stream_copy(on, &copy, completion), TROUPE_OK, "%s",
                 troupe_status_message());
}

static void copy_in(struct troupe_stream *on, void *to, const void *from, size_t bytes,
                    struct news *news)
{
    copy(on, (struct troupe_copy){.to_device = on->device, .to = to, .from = from, .bytes = bytes},
         news);
}

static void copy_out(struct troupe_stream *on, void *to, const void *from, size_t bytes,
                     struct news *news)
{
    copy(on,
         (struct troupe_copy){.from_device = on->device, .to = to, .from = from, .bytes = bytes},
         news);
}

/* How a child ends that reads, or writes, at an address: the signal, 0 without one. */
static int touch(char *at, bool writes)
{
    _Atomic(char) *address = (_Atomic(char) *)at; /* so that no access is optimised away */
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        if (writes)
            atomic_store(address, 1);
        else
            (void)atomic_load(address);
        _exit(0);
    }
    int how;
    cr_assert_eq(waitpid(child, &how, 0), child);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

Test(sim, a_host_that_touches_its_memory_dies, .timeout = DEADLINE)
{
    struct troupe_device *sim = device(0, "1");
    char *memory = alloc(sim, 100);
    char host = 0;
    cr_assert_eq(touch(&host, false), 0);
    cr_assert_eq(touch(memory, false), SIGSEGV);
    cr_assert_eq(touch(memory + 99, true), SIGSEGV);
    troupe_device_free(sim, memory);
    troupe_device_destroy(sim);
}

Test(sim, bytes_come_back, .timeout = DEADLINE)
{
    struct troupe_device *one = device(0, "1"), *two = device(1, "1");
    struct troupe_stream *out = stream(one);
    struct news news = news_none();
    char host[1000], back[1000] = {0};
    for (int i = 0; i < 1000; i++)
        host[i] = (char)(i * 7);
    void *a = alloc(one, 1000), *b = alloc(two, 1000);
    copy_in(out, a, host, 1000, NULL);
    copy(out,
         (struct troupe_copy){
             .to_device = two, .from_device = one, .to = b, .from = a, .bytes = 1000},
         &news);
    cr_assert_eq(await(&news, 1), TROUPE_OK);
    struct troupe_stream *other = stream(two);
    copy_out(other, back, b, 1000, &news);
    cr_assert_eq(await(&news, 2), TROUPE_OK);
    cr_assert_eq(memcmp(host, back, 1000), 0);
    troupe_stream_destroy(out);
    troupe_stream_destroy(other);
    troupe_device_free(one, a);
    troupe_device_free(two, b);
    troupe_device_destroy(one);
    troupe_device_destroy(two);
}

struct add {
    void *memory;
    int32_t value;
};

/* memory[0] = 10 * memory[0] + value: order shows. */
static enum troupe_status add_digit(void *context, struct troupe_stream *on)
{
    const struct add *add = context;
    void *inside;
    enum troupe_status status = troupe_device_reach(on->device, add->memory, 4, &inside);
    if (status == TROUPE_OK)
        *(int32_t *)inside = 10 * *(int32_t *)inside + add->value;
    return status;
}

static void launch_digit(struct troupe_stream *on, struct add *add, struct news *news)
{
    struct troupe_completion completion = {.done = news ? tell : NULL, .context = news};
    cr_assert_eq(troupe_stream_launch(on, add_digit, add, completion), TROUPE_OK);
}

Test(sim, a_stream_keeps_its_order, .timeout = DEADLINE)
{
    for (int seed = 1; seed < 20; seed++) {
        char text[32];
        snprintf(text, sizeof(text), "1,delays=%d", seed);
        struct troupe_device *sim = device(0, text);
        struct troupe_stream *on = stream(sim);
        struct news news = news_none();
        int32_t zero = 0, result = 0;
        struct add adds[6];
        void *memory = alloc(sim, sizeof(zero));
        copy_in(on, memory, &zero, sizeof(zero), &news);
        for (int i = 0; i < 6; i++) {
            adds[i] = (struct add){memory, i + 1};
            launch_digit(on, &adds[i], i % 2 ? &news : NULL);
        }
        copy_out(on, &result, memory, sizeof(result), &news);
        cr_assert_eq(await(&news, 5), TROUPE_OK);
        cr_assert_eq(result, 123456);
        troupe_stream_destroy(on);
        troupe_device_free(sim, memory);
        troupe_device_destroy(sim);
    }
}

/* Two streams of two devices write digits in turns, in the order that events make. */
Test(sim, events_order_streams, .timeout = DEADLINE)
{
    for (int seed = 1; seed < 20; seed++) {
        char text[32];
        snprintf(text, sizeof(text), "2,delays=%d", seed);
        struct troupe_device *sims[2] = {device(0, text), device(1, text)};
        struct troupe_stream *streams[2] = {stream(sims[0]), stream(sims[1])};
        struct troupe_event *events[2];
        struct news news = news_none();
        int32_t digits[6] = {0, 0, 0, 0, 0, 0}, result = 0;
        struct add adds[6];
        void *memory[2] = {alloc(sims[0], 4), alloc(sims[1], 4)};
        cr_assert_eq(troupe_event_create(sims[0], &events[0]), TROUPE_OK);
        cr_assert_eq(troupe_event_create(sims[1], &events[1]), TROUPE_OK);
        copy_in(streams[0], memory[0], &digits[0], 4, NULL);
        for (int i = 0; i < 6; i++) {
            int me = i % 2, next = 1 - me;
            adds[i] = (struct add){memory[me], i + 1};
            launch_digit(streams[me], &adds[i], NULL);
            cr_assert_eq(troupe_stream_record(streams[me], events[me]), TROUPE_OK);
            cr_assert_eq(troupe_stream_wait(streams[next], events[me]), TROUPE_OK);
            copy(streams[next],
                 (struct troupe_copy){.to_device = sims[next],
                                      .from_device = sims[me],
                                      .to = memory[next],
                                      .from = memory[me],
                                      .bytes = 4},
                 NULL);
        }
        copy_out(streams[0], &result, memory[0], 4, &news);
        cr_assert_eq(await(&news, 1), TROUPE_OK);
        cr_assert_eq(result, 123456);
        for (int i = 0; i < 2; i++) {
            troupe_event_destroy(events[i]);
            troupe_stream_destroy(streams[i]);
            troupe_device_free(sims[i], memory[i]);
            troupe_device_destroy(sims[i]);
        }
    }
}

Test(sim, an_event_without_a_record_holds_nothing_back, .timeout = DEADLINE)
{
    struct troupe_device *sim = device(0, "1");
    struct troupe_stream *on = stream(sim), *other = stream(sim);
    struct troupe_event *event;
    struct news news = news_none();
    void *memory = alloc(sim, 4);
    int32_t host = 5;
    cr_assert_eq(troupe_event_create(sim, &event), TROUPE_OK);
    cr_assert_eq(troupe_stream_wait(on, event), TROUPE_OK);
    copy_in(on, memory, &host, 4, &news);
    cr_assert_eq(await(&news, 1), TROUPE_OK);
    cr_assert_eq(troupe_stream_record(on, event), TROUPE_OK);
    cr_assert_eq(troupe_stream_record(other, event), TROUPE_INVALID_ARGUMENT);
    troupe_event_destroy(event); /* what is queued keeps it */
    troupe_stream_destroy(on);
    troupe_stream_destroy(other);
    troupe_device_free(sim, memory);
    troupe_device_destroy(sim);
}

/* A copy is never faster than it is told to be, and reads and writes at its end. */
Test(sim, a_copy_takes_its_time, .timeout = DEADLINE)
{
    struct troupe_device *sim = device(0, "1,latency=20ms,bandwidth=1MB/s");
    struct troupe_stream *on = stream(sim);
    struct news news = news_none();
    static char host[30000];
    void *memory = alloc(sim, sizeof(host));
    uint64_t start = troupe_clock_ns();
    copy_in(on, memory, host, sizeof(host), &news);
    cr_assert_eq(await(&news, 1), TROUPE_OK);
    cr_assert_geq(troupe_clock_ns() - start, 50000000);
    troupe_stream_destroy(on);
    troupe_device_free(sim, memory);
    troupe_device_destroy(sim);
}

Test(sim, memory_is_bounded)
{
    struct troupe_device *sim = device(3, "1,memory=64KiB");
    void *parts[64], *more;
    for (int i = 0; i < 64; i++) {
        parts[i] = alloc(sim, 1000); /* of 1024 each */
        cr_assert_eq((uintptr_t)parts[i] % 64, 0);
        for (int j = 0; j < i; j++)
            cr_assert_neq(parts[i], parts[j]);
    }
    cr_assert_eq(troupe_device_alloc(sim, 1, &more), TROUPE_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(troupe_status_message(),
                     "SIM:3 has no room for 1 bytes: 65536 of its 65536 are in use");
    for (int i = 0; i < 64; i += 2)
        troupe_device_free(sim, parts[i]);
    cr_assert_eq(troupe_device_alloc(sim, 2000, &more), TROUPE_RESOURCE_EXHAUSTED);
    cr_assert(strstr(troupe_status_message(), "no gap between them is as large"));
    for (int i = 1; i < 64; i += 2)
        troupe_device_free(sim, parts[i]);
    more = alloc(sim, 65536); /* what was freed is one piece again */
    troupe_device_free(sim, more);
    cr_assert_eq(troupe_device_alloc(sim, SIZE_MAX, &more), TROUPE_RESOURCE_EXHAUSTED);
    troupe_device_destroy(sim);
}

Test(sim, failures_are_told, .timeout = DEADLINE)
{
    struct troupe_device *sim = device(0, "1"), *other = device(1, "1");
    struct troupe_stream *on = stream(sim);
    struct news news = news_none();
    char host[64] = {0};
    char *memory = alloc(sim, 32);
    copy_in(on, memory, host, 33, &news);
    cr_assert_eq(await(&news, 1), TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(news.message, "not in one allocation of SIM:0"), "%s", news.message);
    copy_in(on, host, host, 1, &news);
    cr_assert_eq(await(&news, 2), TROUPE_INVALID_ARGUMENT);
    copy_in(on, memory + 31, host, 1, &news); /* the stream goes on */
    cr_assert_eq(await(&news, 3), TROUPE_OK);
    struct troupe_copy elsewhere = {.to_device = other, .to = memory, .from = host, .bytes = 1};
    cr_assert_eq(troupe_stream_copy(on, &elsewhere, (struct troupe_completion){0}),
                 TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "a copy from the host to SIM:1 on a stream of SIM:0");
    struct add add = {host, 1};
    launch_digit(on, &add, &news);
    cr_assert_eq(await(&news, 4), TROUPE_INVALID_ARGUMENT);
    troupe_stream_destroy(on);
    troupe_device_free(sim, memory);
    troupe_device_destroy(sim);
    troupe_device_destroy(other);
}

Test(sim, a_table_finds_by_name)
{
    struct troupe_device_table table = {0};
    struct troupe_sim_options options;
    cr_assert_eq(troupe_sim_options_parse("3,memory=1MB", &options), TROUPE_OK);
    cr_assert_eq(troupe_sim_add_all(&options, &table), TROUPE_OK);
    cr_assert_eq(table.count, 3);
    cr_assert_str_eq(table.devices[2]->name, "SIM:2");
    cr_assert_eq(troupe_device_table_find(&table, "SIM", 2), 2);
    cr_assert_eq(troupe_device_table_find(&table, "SIM", 3), -1);
    cr_assert_eq(troupe_device_table_find(&table, "CUDA", 0), -1);
    troupe_device_table_fini(&table);
}

Test(options, all_of_them)
{
    struct troupe_sim_options options;
    cr_assert_eq(
        troupe_sim_options_parse("2,latency=1.5us,bandwidth=2GB/s,delays=7,memory=64MB", &options),
        TROUPE_OK);
    cr_assert_eq(options.count, 2);
    cr_assert_eq(options.latency_ns, 1500);
    cr_assert_eq(options.bandwidth, 2000000000u);
    cr_assert_eq(options.delay_seed, 7);
    cr_assert_eq(options.memory, 64000000);
    cr_assert_eq(troupe_sim_options_parse("1", &options), TROUPE_OK);
    cr_assert_eq(options.count, 1);
    cr_assert_eq(options.latency_ns, 0);
    cr_assert_eq(options.bandwidth, 0);
    cr_assert_eq(options.delay_seed, 0);
    cr_assert_eq(options.memory, TROUPE_SIM_MEMORY_USUAL);
}

Test(options, wrong_ones)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "number of devices first, from 1 to 64"},
        {"0", "number of devices first"},
        {"65", "number of devices first"},
        {"1.5", "number of devices first"},
        {"-1", "number of devices first"},
        {"latency=1us", "number of devices first"},
        {"1,", "no option \"\""},
        {"1,latancy=1us", "no option \"latancy\": there are latency, bandwidth, delays and memory"},
        {"1,latency", "latency wants a time to 10s with its unit"},
        {"1,latency=1", "latency wants"},
        {"1,latency=us", "latency wants"},
        {"1,latency=11s", "latency wants"},
        {"1,latency=0x1us", "latency wants"},
        {"1,latency=1us,", "no option \"\""},
        {"1,bandwidth=1GB", "bandwidth wants a rate"},
        {"1,bandwidth=0B/s", "bandwidth wants a rate"},
        {"1,delays=0", "delays wants a seed"},
        {"1,memory=1", "memory wants"},
        {"1,memory=1B", "memory wants"},
        {"1,memory=99999GB", "memory wants"},
        {"1,memory=1e9B", "memory wants"},
        {"1,memory=nanB", "memory wants"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct troupe_sim_options options;
        cr_assert_eq(troupe_sim_options_parse(rows[i].text, &options), TROUPE_INVALID_ARGUMENT,
                     "%s", rows[i].text);
        cr_assert(strstr(troupe_status_message(), rows[i].says), "%s: %s", rows[i].text,
                  troupe_status_message());
    }
}
