/* SPDX-License-Identifier: Apache-2.0 */
/* allocations_test.c TRANSPORT - a call allocates nothing: once both sides are
 * warm, all that it needs is used again. Two workers in one process, so that
 * what either side allocates is counted, on whatever thread. */
#include "../support/cluster.h"
#include "../testing.h"

#include <openssl/crypto.h>
#include <semaphore.h>
#include <stdatomic.h>

#define CALLS 500u
#define WARM 1500u /* until mostly no thread lacks anything any more */
#define ATTEMPTS 5
#define INFLIGHT 8u /* of calls with a callback */

static const char *transport;
static struct cluster two;

/* ---- counting ---------------------------------------------------------------------------- */

static atomic_uint allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* In the program, so that they override the C library's for all linked or loaded
 * libraries. */
void *malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, size);
}

/* OpenSSL's own are not counted: its records need some of each call, how many depends on its
 * version, and no user of it can avoid them. */
static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return __libc_malloc(size);
}

static void *openssl_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return __libc_realloc(old, size);
}

static void openssl_free(void *old, const char *file, int line)
{
    (void)file;
    (void)line;
    free(old);
}

typedef void calls_fn(unsigned n);

/* Where threads meet, more may be under way at one moment than ever before: then
 * there is one more from now on, and the next attempt does without. */
static void expect_no_allocation(calls_fn *calls)
{
    unsigned before, made = 1;

    calls(WARM);
    for (int i = 0; i < ATTEMPTS && made > 0; i++) {
        before = atomic_load(&allocations);
        calls(CALLS);
        made = atomic_load(&allocations) - before;
    }
    assert_int_equal(made, 0);
}

/* ---- calls ------------------------------------------------------------------------------- */

static tenrec_status on_call(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call;
    (void)arg;
    (void)err;
    return TENREC_OK;
}

static void setup(struct tenrec_worker *w, size_t rank)
{
    (void)rank;
    assert_int_equal(tenrec_worker_register_function(w, "call", on_call, NULL, TENREC_INLINE, NULL),
                     TENREC_OK);
}

/* Small, but not nothing. */
static struct tenrec_value argument(void)
{
    static const char data[64];

    return tenrec_value_bytes(data, sizeof data);
}

static struct tenrec_future *begin(void)
{
    struct tenrec_value v = argument();
    struct tenrec_future *f = NULL;
    tenrec_error err;

    if (tenrec_rpc_async(two.worker[0], "worker1", "call", &v, 1, NULL, &f, &err))
        fail_msg("%s", err.text);
    return f;
}

static void synchronous(unsigned n)
{
    struct tenrec_value v = argument();
    tenrec_error err;

    for (unsigned i = 0; i < n; i++)
        if (tenrec_rpc_sync(two.worker[0], "worker1", "call", &v, 1, NULL, NULL, &err))
            fail_msg("%s", err.text);
}

static void waited_for(unsigned n)
{
    tenrec_error err;

    for (unsigned i = 0; i < n; i++) {
        struct tenrec_future *f = begin();

        if (tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, &err))
            fail_msg("%s", err.text);
        tenrec_future_drop(f);
    }
}

static sem_t room; /* calls that may still be begun */
static atomic_uint failed;

static void on_done(struct tenrec_future *f, void *arg)
{
    (void)arg;
    if (tenrec_future_error(f))
        atomic_fetch_add(&failed, 1);
    sem_post(&room);
}

static void take_room(void)
{
    while (sem_wait(&room))
        ;
}

/* Begun by this thread and ended by the agent's. */
static void with_a_callback(unsigned n)
{
    sem_init(&room, 0, INFLIGHT);
    for (unsigned i = 0; i < n; i++) {
        struct tenrec_future *f;

        take_room();
        f = begin();
        assert_int_equal(tenrec_future_add_callback(f, on_done, NULL, NULL), TENREC_OK);
        tenrec_future_drop(f);
    }
    for (unsigned i = 0; i < INFLIGHT; i++)
        take_room();
    sem_destroy(&room);
    assert_int_equal(atomic_load(&failed), 0);
}

TEST(allocations_none_when_calls_are_synchronous)
{
    expect_no_allocation(synchronous);
}

TEST(allocations_none_when_futures_are_waited_for)
{
    expect_no_allocation(waited_for);
}

TEST(allocations_none_when_callbacks_run_elsewhere)
{
    expect_no_allocation(with_a_callback);
}

static void open_two(void)
{
    static char transports[64];
    static const char *const extra[] = { transports, NULL };

    snprintf(transports, sizeof transports, "backends.tensorpipe.options.transports=[%s]",
             !strcmp(transport, "uv") ? "uv" : "shm, uv");
    cluster_use("tensorpipe");
    cluster_open(&two, 2, extra, setup);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

int main(int argc, char **argv)
{
    transport = argc > 1 ? argv[1] : "uv";
    if (!CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free))
        return 2; /* OpenSSL has memory already */
    return testing_run(open_two, close_two);
}
