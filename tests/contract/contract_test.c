/* The agent contract: what every chain must do, whatever it is made of.
 *
 *     contract_test CONFIG WORKERS
 *
 * With one worker it talks to itself, and the cases that need a second one are
 * left out. */
#include "world.h"

#include "base/clock.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <tenrec/log.h>
#include <unistd.h>

static const char *config_path;
static int n_workers;
static struct world w;
static struct worker *a, *b; /* b == a when there is one only */
static atomic_int log_errors;

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg;
    if (level == TENREC_LOG_ERROR || strstr(text, "does not run")) {
        atomic_fetch_add(&log_errors, 1);
        fprintf(stderr, "%s: %s\n", part, text);
    }
}

static int set_up(void **state)
{
    (void)state;
    world_open(&w, config_path, n_workers);
    a = &w.worker[0];
    b = world_other(&w);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_close(&w);
    return atomic_exchange(&log_errors, 0) ? -1 : 0;
}

static struct tenrec_msg *await(struct worker *k, size_t i, tenrec_peer *ret_from)
{
    assert_becomes(worker_got(k, i, NULL));
    return worker_got(k, i, ret_from);
}

/* --- what travels ----------------------------------------------------------- */

static void contract_send_delivers_both_ways(void **state)
{
    struct tally t = { 0 };
    struct tenrec_msg *msg;
    tenrec_peer from = -7;

    (void)state;
    send_ping(a, b->id, 5, &t);
    msg = await(b, 0, &from);
    assert_int_equal(from, a->id);
    assert_int_equal(msg->type, TENREC_MSG_CALL);
    assert_int_equal(msg->id, 5);
    assert_int_equal(msg->payload_len, 4);
    assert_memory_equal(msg->payload, "ping", 4);
    assert_int_equal(msg->n_tensors, 0);
    send_ping(b, a->id, 6, &t);
    msg = await(a, a == b, &from);
    assert_int_equal(from, b->id);
    assert_int_equal(msg->id, 6);
    assert_becomes(atomic_load(&t.ok) == 2);
}

static void contract_types_and_ids_are_untouched(void **state)
{
    static const int32_t type[] = { 0x100, 0x10f, 0x117, 0x180, 0x1fe, 0x133 };
    static const int32_t answer[] = { 0x203, 0x210, 0x237, 0x283, 0x2ff, 0x24d };
    static const int64_t id[] = { 0, -1, INT64_MAX, INT64_MIN, 255, 1LL << 40 };
    const size_t n = sizeof type / sizeof type[0];
    struct tally t = { 0 };

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = make_request(id[i], "x", 1, 0, &t);
        msg->type = type[i];
        send_msg(a, b->id, msg, &t);
    }
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = await(b, i, NULL), *reply = make_request(id[i], "y", 1, 0, &t);
        assert_int_equal(msg->type, type[i]);
        assert_true(msg->id == id[i]);
        reply->type = answer[i];
        reply->route = msg->route;
        send_msg(b, a->id, reply, &t);
    }
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = await(a, a == b ? n + i : i, NULL);
        assert_int_equal(msg->type, answer[i]);
        assert_true(msg->id == id[i]);
    }
}

static void contract_payloads_of_all_sizes_arrive(void **state)
{
    static const size_t size[] = { 0, 1, 127, 4095, 4096, 65537, 9u << 20, 0 };
    const size_t n = sizeof size / sizeof size[0];
    unsigned char *bytes = malloc(9u << 20);
    struct tally t = { 0 };

    (void)state;
    for (size_t i = 0; i < 9u << 20; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 12));
    for (size_t i = 0; i < n; i++)
        send_msg(a, b->id, make_request((int64_t)i, bytes, size[i], 0, &t), &t);
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = await(b, i, NULL);
        assert_int_equal(msg->payload_len, size[i]);
        assert_memory_equal(msg->payload, bytes, size[i]);
    }
    assert_becomes(atomic_load(&t.ok) == (int)n);
    free(bytes);
}

/* Views of one storage of 1024 bytes; the last one has no element. */
static const struct tenrec_tensor_desc views[] = {
    { .bytes = 1024,
      .dtype = { TENREC_DTYPE_FLOAT, 32, 1 },
      .ndim = 2,
      .shape = { 16, 16 },
      .strides = { 16, 1 } },
    { .bytes = 1024,
      .byte_offset = 8,
      .dtype = { TENREC_DTYPE_INT, 64, 1 },
      .ndim = 3,
      .flags = 0,
      .shape = { 2, 3, 4 },
      .strides = { 1, 2, 6 } },
    { .bytes = 1024, .byte_offset = 1020, .dtype = { TENREC_DTYPE_FLOAT, 32, 1 }, .ndim = 0 },
    { .bytes = 1024,
      .dtype = { TENREC_DTYPE_BFLOAT, 16, 1 },
      .ndim = 1,
      .flags = TENREC_TENSOR_REQUIRES_GRAD,
      .shape = { 256 },
      .strides = { 2 } },
    { .bytes = 1024,
      .byte_offset = 3,
      .dtype = { TENREC_DTYPE_BOOL, 8, 1 },
      .ndim = 1,
      .shape = { 5 },
      .strides = { 1 } },
    { .bytes = 1024,
      .dtype = { TENREC_DTYPE_COMPLEX, 64, 1 },
      .ndim = 4,
      .shape = { 2, 2, 2, 2 },
      .strides = { 8, 4, 2, 1 } },
    { .bytes = 0,
      .dtype = { TENREC_DTYPE_UINT, 8, 1 },
      .ndim = 2,
      .shape = { 0, 7 },
      .strides = { 7, 1 } },
};
#define N_VIEWS (sizeof views / sizeof views[0])

static void contract_tensors_keep_all_their_fields(void **state)
{
    static unsigned char storage[N_VIEWS][1024];
    struct tally t = { 0 };
    struct tenrec_msg *msg = make_request(1, "args", 4, N_VIEWS, &t);

    (void)state;
    for (uint32_t i = 0; i < N_VIEWS; i++) {
        struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);
        *d = views[i];
        d->device.kind = d->target.kind = TENREC_CPU;
        d->data = storage[i];
        for (size_t k = 0; k < sizeof storage[i]; k++)
            storage[i][k] = (unsigned char)(k * 3 + i);
    }
    send_msg(a, b->id, msg, &t);
    msg = await(b, 0, NULL);
    assert_int_equal(msg->n_tensors, N_VIEWS);
    assert_int_equal(atomic_load(&b->placed), 1);
    for (uint32_t i = 0; i < N_VIEWS; i++) {
        const struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i), *want = &views[i];
        assert_int_equal(d->bytes, want->bytes);
        assert_int_equal(d->byte_offset, want->byte_offset);
        assert_memory_equal(&d->dtype, &want->dtype, sizeof d->dtype);
        assert_int_equal(d->ndim, want->ndim);
        assert_int_equal(d->flags, want->flags);
        assert_int_equal(d->device.kind, TENREC_CPU);
        for (uint32_t k = 0; k < d->ndim; k++) {
            assert_int_equal(d->shape[k], want->shape[k]);
            assert_int_equal(d->strides[k], want->strides[k]);
        }
        assert_ptr_not_equal(d->data, storage[i]);
        assert_memory_equal(d->data, storage[i], d->bytes);
    }
    assert_becomes(atomic_load(&t.ok) == 1);
}

/* A request with one tensor of bytes. */
static struct tenrec_msg *tensor_request(void *data, uint64_t bytes, struct tally *t)
{
    struct tenrec_msg *msg = make_request(1, "t", 1, 1, t);

    *msg->tensors = (struct tenrec_tensor_desc){ .data = data,
                                                 .bytes = bytes,
                                                 .dtype = { TENREC_DTYPE_UINT, 8, 1 },
                                                 .ndim = 1,
                                                 .device = { TENREC_CPU, 0 },
                                                 .target = { TENREC_CPU, 0 },
                                                 .shape = { (int64_t)bytes },
                                                 .strides = { 1 } };
    return msg;
}

static void contract_large_tensors_land_where_the_receiver_says(void **state)
{
    const uint64_t bytes = 5000001;
    unsigned char *data = malloc(bytes), *place = malloc(bytes);
    struct tally t = { 0 };
    struct tenrec_msg *msg;

    (void)state;
    for (uint64_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 31 + (i >> 10));
    b->memory = place;
    send_msg(a, b->id, tensor_request(data, bytes, &t), &t);
    msg = await(b, 0, NULL);
    assert_ptr_equal(msg->tensors->data, place);
    assert_memory_equal(place, data, bytes);
    assert_becomes(atomic_load(&t.released) == 1);
    free(data);
    free(place);
}

static void contract_a_message_without_memory_is_dropped_alone(void **state)
{
    static unsigned char data[100000];
    struct tally t = { 0 };

    (void)state;
    atomic_store(&b->no_memory, true);
    send_msg(a, b->id, tensor_request(data, sizeof data, &t), &t);
    send_ping(a, b->id, 77, &t);
    assert_int_equal(await(b, 0, NULL)->id, 77);
    assert_becomes(told(&t) == 2 && atomic_load(&t.released) == 2);
}

/* --- who is told, and how often ------------------------------------------------ */

static void contract_done_and_release_come_exactly_once(void **state)
{
    enum { N = 500 };
    struct tally t = { 0 };
    tenrec_error err;

    (void)state;
    for (int i = 0; i < N; i++)
        send_ping(a, b->id, i, &t);
    assert_becomes(worker_count(b) == N);
    assert_status(chain_drain(a->chain, 10000, &err), &err);
    assert_int_equal(atomic_load(&t.ok), N);
    chain_shutdown(a->chain);
    assert_int_equal(told(&t), N);
    assert_int_equal(atomic_load(&t.released), N);
}

static void contract_an_unknown_peer_is_an_error(void **state)
{
    struct tally t = { 0 };

    (void)state;
    send_ping(a, 31, 1, &t);
    assert_becomes(atomic_load(&t.failed) == 1);
    assert_int_equal(atomic_load(&t.last_error), TENREC_EPEER_UNKNOWN);
    assert_becomes(atomic_load(&t.released) == 1);
    send_ping(a, b->id, 2, &t);
    assert_int_equal(await(b, 0, NULL)->id, 2);
}

static void contract_a_send_to_oneself_arrives(void **state)
{
    struct tally t = { 0 };
    tenrec_peer from = -7;

    (void)state;
    send_ping(a, a->id, 9, &t);
    assert_int_equal(await(a, 0, &from)->id, 9);
    assert_int_equal(from, a->id);
}

struct sender {
    struct worker *from;
    tenrec_peer to;
    int64_t first_id;
    struct tally *tally;
};

enum { PER_THREAD = 200 };

static void *send_many(void *arg)
{
    const struct sender *s = arg;

    for (int i = 0; i < PER_THREAD; i++) {
        char bytes[64];
        memset(bytes, i, sizeof bytes);
        send_msg(s->from, s->to, make_request(s->first_id + i, bytes, (size_t)i % 64, 0, s->tally),
                 s->tally);
    }
    return NULL;
}

/* Each thread's messages came, once each and in its order. */
static void check_ids(struct worker *k, const int64_t *first_id, int n)
{
    int next[4] = { 0 };

    assert_becomes(worker_count(k) == (size_t)n * PER_THREAD);
    for (size_t i = 0; i < (size_t)n * PER_THREAD; i++) {
        const struct tenrec_msg *msg = worker_got(k, i, NULL);
        for (int s = 0; s < n; s++)
            if (msg->id >= first_id[s] && msg->id < first_id[s] + PER_THREAD) {
                assert_int_equal(msg->id, first_id[s] + next[s]);
                assert_int_equal(msg->payload_len, next[s] % 64);
                next[s]++;
            }
    }
}

static void contract_many_threads_may_send_at_once(void **state)
{
    struct tally t = { 0 };
    const struct sender s[4] = { { a, b->id, 0, &t },
                                 { b, a->id, 10000, &t },
                                 { a, b->id, 20000, &t },
                                 { b, a->id, 30000, &t } };
    const int64_t to_b[] = { 0, 20000 }, to_a[] = { 10000, 30000 };
    const int64_t all[] = { 0, 10000, 20000, 30000 };
    pthread_t thread[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, send_many, (void *)(uintptr_t)&s[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    if (a == b) {
        check_ids(a, all, 4);
    } else {
        check_ids(b, to_b, 2);
        check_ids(a, to_a, 2);
    }
    assert_becomes(atomic_load(&t.ok) == 4 * PER_THREAD);
    assert_becomes(atomic_load(&t.released) == 4 * PER_THREAD);
}

/* --- answers ------------------------------------------------------------------- */

static void contract_an_answer_finds_its_way_back(void **state)
{
    struct tally t = { 0 };
    struct tenrec_msg *msg;

    (void)state;
    atomic_store(&b->answers, true);
    send_ping(a, b->id, 42, &t);
    msg = await(a, 0, NULL);
    assert_int_equal(msg->type, TENREC_MSG_RET);
    assert_int_equal(msg->id, 42);
    assert_memory_equal(msg->payload, "ping", 4);
}

static void contract_an_answer_without_a_way_back_is_dropped(void **state)
{
    struct tally t = { 0 }, answered = { 0 };
    struct tenrec_msg *request, *reply;
    tenrec_error err;

    (void)state;
    send_ping(a, b->id, 1, &t);
    request = await(b, 0, NULL);
    assert_status(chain_disconnect(a->chain, b->id, &err), &err);
    send_ping(a, b->id, 2, &t); /* a new connection, which the answer must not take */
    await(b, 1, NULL);
    reply = make_request(1, "late", 4, 0, &answered);
    reply->type = TENREC_MSG_RET;
    reply->route = request->route;
    send_msg(b, a->id, reply, &answered);
    assert_becomes(told(&answered) == 1 && atomic_load(&answered.released) == 1);
    atomic_store(&b->answers, true);
    send_ping(a, b->id, 3, &t);
    assert_int_equal(await(a, 0, NULL)->id, 3);
}

static bool got_one(void *arg)
{
    return worker_count(arg) > 0;
}

/* Either it reads until the answer is there, or it says at once that it can't. */
static void contract_poll_brings_the_answer_or_is_unsupported(void **state)
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct tenrec_wait wait = { .size = sizeof wait, .wake_fd = fd, .done = got_one, .arg = a };
    struct tally t = { 0 };
    tenrec_status st;

    (void)state;
    atomic_store(&a->wake_fd, fd);
    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    if (a != b) {
        wait.deadline_ns = clock_deadline_ms(5); /* nobody answers yet */
        st = chain_poll(a->chain, b->id, &wait);
        assert_true(st == TENREC_OK || st == TENREC_EUNSUPPORTED);
    }
    atomic_store(&b->answers, true);
    wait.deadline_ns = clock_deadline_ms(10000);
    send_ping(a, b->id, 2, &t);
    st = chain_poll(a->chain, b->id, &wait);
    if (st != TENREC_EUNSUPPORTED) {
        assert_int_equal(st, TENREC_OK);
        assert_true(got_one(a));
    }
    if (a != b)
        assert_int_equal(await(a, 0, NULL)->id, 2);
    chain_shutdown(a->chain); /* nobody writes to it afterwards */
    close(fd);
}

/* --- flow control --------------------------------------------------------------- */

static void contract_requests_wait_while_the_user_takes_none(void **state)
{
    struct tally t = { 0 };

    (void)state;
    atomic_store(&b->refuses, true);
    atomic_store(&a->answers, true);
    send_ping(a, b->id, 1, &t);
    send_ping(b, a->id, 2, &t);
    assert_int_equal(await(b, 0, NULL)->type, TENREC_MSG_RET);
    assert_int_equal(worker_count(b), 1);
    atomic_store(&b->refuses, false);
    chain_resume(b->chain);
    assert_int_equal(await(b, 1, NULL)->id, 1);
}

/* --- lost peers ------------------------------------------------------------------ */

static void contract_a_send_after_disconnect_connects_again(void **state)
{
    struct tally t = { 0 };
    tenrec_error err;

    (void)state;
    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    assert_becomes(atomic_load(&t.ok) == 1);
    assert_status(chain_disconnect(a->chain, b->id, &err), &err);
    assert_becomes(atomic_load(&a->lost) == 1);
    send_ping(a, b->id, 2, &t);
    assert_int_equal(await(b, 1, NULL)->id, 2);
    assert_int_equal(atomic_load(&a->lost), 1);
}

static void contract_a_peer_that_shuts_down_is_lost(void **state)
{
    struct tally t = { 0 };

    (void)state;
    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    chain_shutdown(b->chain);
    assert_becomes(atomic_load(&a->lost) == 1);
    send_ping(a, b->id, 2, &t);
    assert_becomes(told(&t) == 2 && atomic_load(&t.released) == 2);
    assert_int_equal(atomic_load(&t.failed), 1);
}

static void contract_a_caller_that_shuts_down_is_lost(void **state)
{
    struct tally t = { 0 };

    (void)state;
    send_ping(b, a->id, 1, &t);
    await(a, 0, NULL);
    chain_shutdown(b->chain);
    assert_becomes(atomic_load(&a->callers_lost) == 1);
    assert_int_equal(atomic_load(&a->lost), 0); /* nothing of a's was under way to it */
}

/* --- the end ---------------------------------------------------------------------- */

static void contract_shutdown_tells_what_is_pending(void **state)
{
    enum { N = 40, BYTES = 1 << 18 };
    char *bytes = calloc(1, BYTES);
    struct tally t = { 0 };

    (void)state;
    atomic_store(&b->refuses, true); /* so that sends pile up */
    for (int i = 0; i < N; i++)
        send_msg(a, b->id, make_request(i, bytes, BYTES, 0, &t), &t);
    chain_shutdown(a->chain);
    assert_int_equal(told(&t), N);
    assert_int_equal(atomic_load(&t.released), N);
    free(bytes);
}

static atomic_bool stop;

static void *send_until_stopped(void *arg)
{
    const struct sender *s = arg;

    for (int64_t i = 0; !atomic_load(&stop); i++)
        send_ping(s->from, s->to, i, s->tally);
    return NULL;
}

static void contract_nothing_is_called_after_shutdown(void **state)
{
    struct tally t = { 0 };
    struct sender s = { b, a->id, 0, &t };
    pthread_t thread;
    int delivered, lost, told_before;

    (void)state;
    atomic_store(&stop, false);
    atomic_store(&a->discards, true);
    assert_int_equal(pthread_create(&thread, NULL, send_until_stopped, &s), 0);
    assert_becomes(atomic_load(&a->n_delivered) > 50);
    chain_shutdown(a->chain);
    delivered = atomic_load(&a->n_delivered);
    lost = atomic_load(&a->lost);
    told_before = told(&t);
    /* A good deal more is tried before we look. */
    assert_becomes(told(&t) > told_before + 100);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&a->n_delivered), delivered);
    assert_int_equal(atomic_load(&a->lost), lost);
    chain_shutdown(b->chain);
    assert_int_equal(told(&t), atomic_load(&t.released));
}

static void contract_a_send_after_shutdown_fails(void **state)
{
    struct tally t = { 0 };

    (void)state;
    chain_shutdown(a->chain);
    send_ping(a, b->id, 1, &t);
    assert_int_equal(atomic_load(&t.failed), 1);
    assert_int_equal(atomic_load(&t.last_error), TENREC_ESHUTDOWN);
    assert_int_equal(atomic_load(&t.released), 1);
}

/* --- for people --------------------------------------------------------------------- */

struct keys {
    char seen[4096]; /* "\nkey\nkey\n" */
    int n;
};

static void on_key(void *arg, const char *key, const char *value)
{
    struct keys *keys = arg;
    const struct chain *c = a->chain;
    char line[300];
    bool known = false;
    size_t n;

    assert_non_null(value);
    for (size_t i = 0; i < chain_depth(c); i++) {
        n = strlen(chain_name(c, i));
        known |= strncmp(key, chain_name(c, i), n) == 0 && key[n] == '.' && key[n + 1];
    }
    if (!known)
        fail_msg("'%s' begins with the name of no link", key);
    snprintf(line, sizeof line, "\n%s\n", key);
    if (strstr(keys->seen, line))
        fail_msg("'%s' is there twice", key);
    n = strlen(keys->seen);
    assert_true(n + strlen(line) < sizeof keys->seen);
    snprintf(keys->seen + n, sizeof keys->seen - n, "%s", keys->n++ ? line + 1 : line);
}

static void contract_debug_info_names_its_link(void **state)
{
    struct keys keys = { .n = 0 };
    struct tally t = { 0 };

    (void)state;
    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    chain_debug_info(a->chain, on_key, &keys);
    if (a != b)
        assert_true(keys.n > 0);
}

int main(int argc, char **argv)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest test[] = {
        CASE(contract_send_delivers_both_ways),
        CASE(contract_types_and_ids_are_untouched),
        CASE(contract_payloads_of_all_sizes_arrive),
        CASE(contract_tensors_keep_all_their_fields),
        CASE(contract_large_tensors_land_where_the_receiver_says),
        CASE(contract_a_message_without_memory_is_dropped_alone),
        CASE(contract_done_and_release_come_exactly_once),
        CASE(contract_an_unknown_peer_is_an_error),
        CASE(contract_a_send_to_oneself_arrives),
        CASE(contract_many_threads_may_send_at_once),
        CASE(contract_an_answer_finds_its_way_back),
        CASE(contract_poll_brings_the_answer_or_is_unsupported),
        CASE(contract_shutdown_tells_what_is_pending),
        CASE(contract_a_send_after_shutdown_fails),
        CASE(contract_debug_info_names_its_link),
        /* Only with two: */
        CASE(contract_an_answer_without_a_way_back_is_dropped),
        CASE(contract_requests_wait_while_the_user_takes_none),
        CASE(contract_a_send_after_disconnect_connects_again),
        CASE(contract_a_peer_that_shuts_down_is_lost),
        CASE(contract_a_caller_that_shuts_down_is_lost),
        CASE(contract_nothing_is_called_after_shutdown),
    };
    enum { ALL = sizeof test / sizeof test[0], ALONE = ALL - 6 };
    struct CMUnitTest alone[ALONE];

    if (argc != 3)
        return 2;
    config_path = argv[1];
    n_workers = atoi(argv[2]);
    tenrec_set_log_callback(on_log, NULL);
    tenrec_set_log_level(TENREC_LOG_DEBUG);
    memcpy(alone, test, sizeof alone);
    if (n_workers == 1)
        return cmocka_run_group_tests_name("contract", alone, NULL, NULL);
    return cmocka_run_group_tests_name("contract", test, NULL, NULL);
}
