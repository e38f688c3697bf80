/* Queues. Invariant: outside of the lock no firing waits that could go on; a firing is ended after
 * the lock was given back. */
#include "ops/kernels/queue_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "ops/kernels/queue_take.h"
#include "ops/tensor.h"

/* A firing that waits, and what it has or brings. */
struct waiter {
    struct waiter *next;
    struct troupe_deferred deferred;
    int64_t wanted; /* elements to take, or brought */
    bool stacks, up_to;
    struct troupe_queue_row **rows; /* `wanted` of them, or taken so far */
    int64_t moved;                  /* out of the queue, or into it */
    enum troupe_status status;      /* how it ends */
    char *message;
};

struct waiters {
    struct waiter *first, **end;
};

struct troupe_queue {
    struct troupe_payload payload; /* first */
    struct troupe_queue_options options;
    char *name;
    pthread_mutex_t lock; /* guards all below */
    struct troupe_queue_rows rows;
    struct waiters enqueues, dequeues;
    uint64_t brought; /* elements so far */
    uint64_t drawn;   /* random numbers so far */
    bool is_closed;
};

/* ---- Rows ---- */

struct troupe_queue_row *troupe_queue_row_create(struct troupe_tensor *const *components, int count)
{
    struct troupe_queue_row *row =
        troupe_calloc(1, sizeof(*row) + (size_t)count * sizeof(struct troupe_tensor *));
    for (int i = 0; row && i < count; i++)
        row->components[i] = troupe_tensor_ref(components[i]);
    return row;
}

void troupe_queue_row_free(struct troupe_queue_row *row, int components)
{
    for (int i = 0; row && i < components; i++)
        troupe_tensor_unref(row->components[i]);
    free(row);
}

/* ---- Waiters ---- */

static void waiters_init(struct waiters *waiters)
{
    waiters->first = NULL;
    waiters->end = &waiters->first;
}

static void waiters_append(struct waiters *waiters, struct waiter *waiter)
{
    waiter->next = NULL;
    *waiters->end = waiter;
    waiters->end = &waiter->next;
}

static void waiters_remove(struct waiters *waiters, struct waiter **link)
{
    struct waiter *waiter = *link;
    *link = waiter->next;
    if (waiters->end == &waiter->next)
        waiters->end = link;
}

static void waiter_fail(struct waiter *waiter, enum troupe_status status, char *message)
{
    waiter->status = status;
    waiter->message = message;
}

/* Ends the firings of a list that nobody else knows any more. */
static void waiters_finish(struct troupe_queue *queue, struct waiters *over)
{
    /* The queue may go with the last firing that held it. */
    int components = queue->options.components;
    bool pads = queue->options.pads;
    for (struct waiter *waiter = over->first; waiter;) {
        struct waiter *next = waiter->next;
        bool takes = waiter->deferred.kernel->output_count > 0;
        if (waiter->status != TROUPE_OK)
            troupe_deferred_complete(&waiter->deferred, waiter->status,
                                     waiter->message ? waiter->message : "no memory", NULL);
        else if (takes)
            troupe_queue_give(&waiter->deferred, waiter->rows, waiter->moved, waiter->stacks, pads);
        else
            troupe_deferred_complete(&waiter->deferred, TROUPE_OK, NULL, NULL);
        for (int64_t i = 0; waiter->rows && i < (takes ? waiter->moved : waiter->wanted); i++)
            troupe_queue_row_free(waiter->rows[i], components);
        free(waiter->rows);
        free(waiter->message);
        free(waiter);
        waiter = next;
    }
}

/* ---- Moving ---- */

static bool fill_locked(struct troupe_queue *queue, struct waiters *over)
{
    struct waiter *waiter = queue->enqueues.first;
    bool moved = false;
    while (waiter->moved < waiter->wanted && queue->rows.count < queue->options.capacity) {
        struct troupe_queue_row *row = waiter->rows[waiter->moved];
        row->number = queue->brought++;
        if (!troupe_queue_rows_put(&queue->rows, queue->options.order, row)) {
            waiter_fail(waiter, TROUPE_RESOURCE_EXHAUSTED, NULL);
            break;
        }
        waiter->rows[waiter->moved++] = NULL;
        moved = true;
    }
    if (waiter->moved < waiter->wanted && waiter->status == TROUPE_OK)
        return moved;
    waiters_remove(&queue->enqueues, &queue->enqueues.first);
    waiters_append(over, waiter);
    return true;
}

/* Elements of a closed queue that are too few go back to where they came from. */
static void put_back_locked(struct troupe_queue *queue, struct waiter *waiter)
{
    while (waiter->moved > 0) {
        struct troupe_queue_row *row = waiter->rows[--waiter->moved];
        if (!troupe_queue_rows_put_back(&queue->rows, queue->options.order, row))
            troupe_queue_row_free(row, queue->options.components);
    }
}

static void starve_locked(struct troupe_queue *queue, struct waiter *waiter)
{
    long long had = (long long)queue->rows.count + (long long)waiter->moved;
    put_back_locked(queue, waiter);
    waiter_fail(waiter, TROUPE_OUT_OF_RANGE,
                troupe_asprintf("queue \"%s\" is closed and has insufficient elements (requested "
                                "%lld, current size %lld)",
                                queue->name, (long long)waiter->wanted, had));
}

static bool drain_locked(struct troupe_queue *queue, struct waiters *over)
{
    struct waiter *waiter = queue->dequeues.first;
    bool is_last = queue->is_closed && !queue->enqueues.first, moved = false;
    int64_t keep = queue->is_closed ? 0 : queue->options.min_after_dequeue;
    while (waiter->moved < waiter->wanted && queue->rows.count > keep) {
        uint64_t random =
            troupe_hash_u64(troupe_hash_u64(TROUPE_HASH_START, queue->options.seed), queue->drawn);
        queue->drawn += queue->options.order == TROUPE_QUEUE_SHUFFLE;
        waiter->rows[waiter->moved++] =
            troupe_queue_rows_take(&queue->rows, queue->options.order, random);
        moved = true;
    }
    if (waiter->moved < waiter->wanted) {
        if (!is_last)
            return moved;
        if (!waiter->up_to || waiter->moved == 0)
            starve_locked(queue, waiter);
    }
    waiters_remove(&queue->dequeues, &queue->dequeues.first);
    waiters_append(over, waiter);
    return true;
}

/* Moves what can be moved, and lists whoever is done. */
static void settle_locked(struct troupe_queue *queue, struct waiters *over)
{
    for (bool moved = true; moved;) {
        moved = false;
        if (queue->enqueues.first)
            moved |= fill_locked(queue, over);
        if (queue->dequeues.first)
            moved |= drain_locked(queue, over);
    }
}

static void refuse_locked(struct troupe_queue *queue, struct waiter *waiter)
{
    waiter_fail(waiter, TROUPE_CANCELLED, troupe_asprintf("queue \"%s\" is closed", queue->name));
}

/* ---- What ops call ---- */

static struct waiter *waiter_create(const struct troupe_deferred *deferred, int64_t wanted,
                                    struct troupe_queue_row **rows)
{
    struct waiter *waiter = troupe_calloc(1, sizeof(*waiter));
    if (!waiter)
        return NULL;
    waiter->deferred = *deferred;
    waiter->wanted = wanted;
    waiter->rows = rows;
    return waiter;
}

void troupe_queue_enqueue(struct troupe_queue *queue, const struct troupe_deferred *deferred,
                          struct troupe_queue_row **rows, int64_t count)
{
    struct waiter *waiter = waiter_create(deferred, count, rows);
    struct waiters over;
    waiters_init(&over);
    if (!waiter) {
        for (int64_t i = 0; i < count; i++)
            troupe_queue_row_free(rows[i], queue->options.components);
        free(rows);
        troupe_deferred_complete(deferred, TROUPE_RESOURCE_EXHAUSTED, NULL, NULL);
        return;
    }
    pthread_mutex_lock(&queue->lock);
    if (queue->is_closed) {
        refuse_locked(queue, waiter);
        waiters_append(&over, waiter);
    } else {
        waiters_append(&queue->enqueues, waiter);
    }
    settle_locked(queue, &over);
    pthread_mutex_unlock(&queue->lock);
    waiters_finish(queue, &over);
}

void troupe_queue_dequeue(struct troupe_queue *queue, const struct troupe_deferred *deferred,
                          int64_t count, bool stacks, bool up_to)
{
    struct troupe_queue_row **rows =
        troupe_calloc((size_t)count + 1, sizeof(struct troupe_queue_row *));
    struct waiter *waiter = rows ? waiter_create(deferred, count, rows) : NULL;
    struct waiters over;
    waiters_init(&over);
    if (!waiter) {
        free(rows);
        troupe_deferred_complete(deferred, TROUPE_RESOURCE_EXHAUSTED, NULL, NULL);
        return;
    }
    waiter->stacks = stacks;
    waiter->up_to = up_to;
    pthread_mutex_lock(&queue->lock);
    waiters_append(&queue->dequeues, waiter);
    settle_locked(queue, &over);
    pthread_mutex_unlock(&queue->lock);
    waiters_finish(queue, &over);
}

enum troupe_status troupe_queue_put(struct troupe_queue *queue, struct troupe_queue_row *row)
{
    enum troupe_status status = TROUPE_OK;
    struct waiters over;
    waiters_init(&over);
    pthread_mutex_lock(&queue->lock);
    row->number = queue->brought++;
    if (queue->is_closed)
        status = troupe_status_fail(TROUPE_CANCELLED, "queue \"%s\" is closed", queue->name);
    else if (!troupe_queue_rows_put(&queue->rows, queue->options.order, row))
        status = TROUPE_RESOURCE_EXHAUSTED;
    else
        settle_locked(queue, &over);
    pthread_mutex_unlock(&queue->lock);
    if (status != TROUPE_OK)
        troupe_queue_row_free(row, queue->options.components);
    waiters_finish(queue, &over);
    return status;
}

void troupe_queue_close(struct troupe_queue *queue, bool cancels)
{
    struct waiters over;
    waiters_init(&over);
    pthread_mutex_lock(&queue->lock);
    queue->is_closed = true;
    while (cancels && queue->enqueues.first) {
        struct waiter *waiter = queue->enqueues.first;
        refuse_locked(queue, waiter);
        waiters_remove(&queue->enqueues, &queue->enqueues.first);
        waiters_append(&over, waiter);
    }
    settle_locked(queue, &over);
    pthread_mutex_unlock(&queue->lock);
    waiters_finish(queue, &over);
}

static void release_locked(struct troupe_queue *queue, struct waiters *waiters,
                           const struct troupe_kernel *kernel, uint64_t first, struct waiters *over)
{
    for (struct waiter **link = &waiters->first; *link;) {
        struct waiter *waiter = *link;
        if (waiter->deferred.kernel != kernel || waiter->deferred.iteration < first) {
            link = &waiter->next;
            continue;
        }
        waiters_remove(waiters, link);
        if (waiters == &queue->dequeues)
            put_back_locked(queue, waiter);
        waiter_fail(waiter, TROUPE_ABORTED, troupe_strdup("the run has ended"));
        waiters_append(over, waiter);
    }
}

void troupe_queue_release(struct troupe_queue *queue, const struct troupe_kernel *kernel,
                          uint64_t first)
{
    struct waiters over;
    waiters_init(&over);
    pthread_mutex_lock(&queue->lock);
    release_locked(queue, &queue->enqueues, kernel, first, &over);
    release_locked(queue, &queue->dequeues, kernel, first, &over);
    settle_locked(queue, &over);
    pthread_mutex_unlock(&queue->lock);
    waiters_finish(queue, &over);
}

int64_t troupe_queue_size(struct troupe_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int64_t size = queue->rows.count;
    pthread_mutex_unlock(&queue->lock);
    return size;
}

bool troupe_queue_is_closed(struct troupe_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool is_closed = queue->is_closed;
    pthread_mutex_unlock(&queue->lock);
    return is_closed;
}

/* ---- Making ---- */

static void queue_destroy(struct troupe_payload *payload)
{
    struct troupe_queue *queue = troupe_container_of(payload, struct troupe_queue, payload);
    for (int64_t i = 0; i < queue->rows.count; i++)
        troupe_queue_row_free(troupe_queue_rows_at(&queue->rows, i), queue->options.components);
    free(queue->rows.items);
    free(queue->name);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

enum troupe_status troupe_queue_create(const char *name, const struct troupe_queue_options *options,
                                       struct troupe_queue **out)
{
    struct troupe_queue *queue = troupe_calloc(1, sizeof(*queue));
    if (!queue)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_payload_init(&queue->payload, queue_destroy);
    pthread_mutex_init(&queue->lock, NULL);
    queue->options = *options;
    queue->name = troupe_strdup(name);
    waiters_init(&queue->enqueues);
    waiters_init(&queue->dequeues);
    if (!queue->name) {
        troupe_payload_unref(&queue->payload);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    *out = queue;
    return TROUPE_OK;
}

struct troupe_payload *troupe_queue_payload(struct troupe_queue *queue)
{
    return &queue->payload;
}

struct troupe_queue *troupe_queue_of(struct troupe_payload *element)
{
    if (!element || element->destroy != queue_destroy)
        return NULL;
    return troupe_container_of(element, struct troupe_queue, payload);
}

const struct troupe_queue_options *troupe_queue_options_of(const struct troupe_queue *queue)
{
    return &queue->options;
}
