/* Letters: control messages between the ranks of a session. Invariant: a letter is either handled
 * by a run in progress as it comes, or kept in order until somebody awaits its kind. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/session.h"
#include "coordinator/wire.h"

enum troupe_status troupe_session_send(struct troupe_session *session, int to, uint32_t kind,
                                       const struct troupe_text *text)
{
    struct troupe_transport *transport = session->runtime->transport;
    if (text && text->failed)
        return TROUPE_RESOURCE_EXHAUSTED;
    return transport->ops->message(transport, to, kind, text ? text->data : NULL,
                                   text ? text->length : 0);
}

enum troupe_status troupe_session_send_all(struct troupe_session *session, uint32_t kind,
                                           const struct troupe_text *text)
{
    struct troupe_transport *transport = session->runtime->transport;
    enum troupe_status status = TROUPE_OK;
    for (int to = 0; to < transport->size && status == TROUPE_OK; to++)
        if (to != transport->rank)
            status = troupe_session_send(session, to, kind, text);
    return status;
}

void troupe_runtime_receive(void *context, int from, uint32_t kind, const void *data, size_t bytes)
{
    struct troupe_runtime *runtime = context;
    struct troupe_letter *letter = malloc(sizeof(*letter) + bytes);
    if (!letter) {
        troupe_runtime_abort(runtime, 3);
        return;
    }
    letter->next = NULL;
    letter->from = from;
    letter->kind = kind;
    letter->bytes = bytes;
    if (bytes > 0)
        memcpy(letter->data, data, bytes);
    pthread_mutex_lock(&runtime->lock);
    if (runtime->session && (troupe_run_receive(runtime->session, kind, data, bytes) ||
                             troupe_watch_receive(runtime->session, from, kind, data, bytes))) {
        free(letter);
    } else {
        if (runtime->last)
            runtime->last->next = letter;
        else
            runtime->first = letter;
        runtime->last = letter;
        atomic_store(&runtime->letter_came, 1);
    }
    struct troupe_pool *pool = runtime->pool;
    pthread_mutex_unlock(&runtime->lock);
    if (pool) /* else the runtime is being destroyed, and nobody waits */
        troupe_pool_wake(pool);
}

void troupe_runtime_drop_letters(struct troupe_runtime *runtime)
{
    while (runtime->first) {
        struct troupe_letter *letter = runtime->first;
        runtime->first = letter->next;
        free(letter);
    }
    runtime->last = NULL;
}

struct troupe_letter *troupe_session_take(struct troupe_session *session, uint32_t kind)
{
    struct troupe_runtime *runtime = session->runtime;
    pthread_mutex_lock(&runtime->lock);
    atomic_store(&runtime->letter_came, 0);
    struct troupe_letter *before = NULL, *letter = runtime->first;
    while (letter && kind && letter->kind != kind) {
        before = letter;
        letter = letter->next;
    }
    if (letter) {
        if (before)
            before->next = letter->next;
        else
            runtime->first = letter->next;
        if (runtime->last == letter)
            runtime->last = before;
    }
    pthread_mutex_unlock(&runtime->lock);
    return letter;
}

enum troupe_status troupe_session_await(struct troupe_session *session, uint32_t kind,
                                        struct troupe_letter **out)
{
    enum troupe_status status = TROUPE_OK;
    struct troupe_letter *letter;
    troupe_runtime_await(session->runtime);
    while (!(letter = troupe_session_take(session, kind)) && status == TROUPE_OK)
        status = troupe_pool_drive(session->runtime->pool, &session->runtime->letter_came, 0);
    troupe_runtime_unawait(session->runtime);
    if (!letter)
        return status;
    *out = letter;
    return TROUPE_OK;
}

/* Adds {status, message}. */
static void put_outcome(struct troupe_text *text, enum troupe_status status)
{
    troupe_wire_put_u64(text, (uint64_t)status);
    troupe_wire_put_string(text, status == TROUPE_OK ? "" : troupe_status_message());
}

/* Reads {status, message}; leaves the message as the thread's. */
static enum troupe_status get_outcome(struct troupe_wire_reader *reader)
{
    uint64_t status = troupe_wire_get_u64(reader);
    char *message = troupe_wire_get_string(reader);
    enum troupe_status result = TROUPE_OK;
    if (!reader->failed && status != TROUPE_OK)
        result = troupe_status_fail(status < TROUPE_STATUS_COUNT ? (enum troupe_status)status
                                                                 : TROUPE_INTERNAL,
                                    "%s", message ? message : "");
    free(message);
    return result;
}

static enum troupe_status send_verdict(struct troupe_session *session, enum troupe_status status)
{
    struct troupe_text text;
    troupe_text_init(&text);
    put_outcome(&text, status);
    enum troupe_status sent = troupe_session_send_all(session, TROUPE_MESSAGE_VERDICT, &text);
    troupe_text_fini(&text);
    return sent == TROUPE_OK ? status : sent;
}

static enum troupe_status read_verdict(const struct troupe_letter *letter)
{
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, letter->data, letter->bytes);
    enum troupe_status result = get_outcome(&reader);
    return result == TROUPE_OK ? troupe_wire_close(&reader, "verdict") : result;
}

/* How another rank did, and whether it came to agree on the same thing. */
static enum troupe_status read_outcome(const struct troupe_letter *letter, uint64_t subject)
{
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, letter->data, letter->bytes);
    uint64_t its = troupe_wire_get_u64(&reader);
    enum troupe_status result = get_outcome(&reader);
    if (result == TROUPE_OK)
        result = troupe_wire_close(&reader, "outcome");
    if (result == TROUPE_OK && its != subject)
        result = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                    "rank %d asks for another run than rank 0: in collective use "
                                    "all ranks give the same feeds, fetches, targets and steps",
                                    letter->from);
    return result;
}

/* Rank 0 hears how every other rank did; the first failure, its own first, is the verdict. */
static enum troupe_status gather_outcomes(struct troupe_session *session, enum troupe_status status,
                                          uint64_t subject)
{
    char *message = status == TROUPE_OK ? NULL : troupe_strdup(troupe_status_message());
    for (int i = 1; i < session->runtime->transport->size; i++) {
        struct troupe_letter *letter;
        enum troupe_status other = troupe_session_await(session, TROUPE_MESSAGE_OUTCOME, &letter);
        if (other == TROUPE_OK) {
            other = read_outcome(letter, subject);
            free(letter);
        }
        if (status == TROUPE_OK && other != TROUPE_OK) {
            status = other;
            message = troupe_strdup(troupe_status_message());
        }
    }
    if (status != TROUPE_OK)
        status = troupe_status_fail(status, "%s", message ? message : "");
    free(message);
    return status;
}

enum troupe_status troupe_session_agree(struct troupe_session *session, enum troupe_status status,
                                        uint64_t subject)
{
    struct troupe_transport *transport = session->runtime->transport;
    if (transport->size == 1)
        return status;
    if (transport->rank == 0)
        return send_verdict(session, gather_outcomes(session, status, subject));
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_u64(&text, subject);
    put_outcome(&text, status);
    status = troupe_session_send(session, 0, TROUPE_MESSAGE_OUTCOME, &text);
    troupe_text_fini(&text);
    if (status != TROUPE_OK)
        return status;
    struct troupe_letter *letter;
    status = troupe_session_await(session, TROUPE_MESSAGE_VERDICT, &letter);
    if (status != TROUPE_OK)
        return status;
    status = read_verdict(letter);
    free(letter);
    return status;
}
