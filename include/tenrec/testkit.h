/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/testkit.h - tests of programs that use Tenrec (libtenrec-testkit).
 *
 * A test starts its workers in one call, as threads or as processes:
 *
 *     tenrec_test_dist_init(&options, &err)    each worker runs options.body
 *     tenrec_test_group_open(&options, &g, &err)   this thread drives them
 *
 * Each group meets in a store of its own, so that tests may run side by side.
 * A failure in a worker (an error, a failed assertion, a crash, a hang, a leak) fails the call
 * in the test with the name of the worker and its last message; stderr has the details.
 *
 * Include <cmocka.h> before this header, and cmocka's assertions work in
 * bodies. A function that answers calls runs on a thread of the worker: it
 * returns its errors instead.
 *
 * Limits are milliseconds of a plain build; sanitizers stretch them, and
 * TENREC_TEST_SLOW=N makes them N times as long.
 *
 * Processes are made by fork(): the calling process should have no other
 * threads then (under TSan it must not), and has none once every group before
 * was closed. A body inherits all memory; its writes do not reach the memory of the test.
 */
#ifndef TENREC_TESTKIT_H
#define TENREC_TESTKIT_H

#include <tenrec/profiler.h>
#include <tenrec/rpc.h>
#include <tenrec/store.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The worker that runs a body. Grows at its end: given out by pointer only. */
struct tenrec_test {
    struct tenrec_worker *worker; /* runs; NULL with TENREC_TEST_NO_RPC */
    int32_t rank;
    int32_t world_size;
    const char *name;        /* "worker1" */
    const char *init_method; /* for tenrec_test_initialize_pg */
    void *arg;               /* as in the options */
};

/* Registers functions before the worker starts. */
typedef tenrec_status tenrec_test_setup_fn(struct tenrec_worker *w, int32_t rank, void *arg,
                                           tenrec_error *err);

/* The work of a worker between init and shutdown. */
typedef tenrec_status tenrec_test_body_fn(const struct tenrec_test *t, tenrec_error *err);

/* Runs fn(arg) so that a failed assertion of a test framework ends fn only; returns false then. */
typedef bool tenrec_test_guard_fn(const char *name, void (*fn)(void *arg), void *arg);

enum tenrec_test_mode {
    TENREC_TEST_THREADS,   /* all in this process */
    TENREC_TEST_PROCESSES, /* each in one of its own */
};

enum tenrec_test_flags {
    TENREC_TEST_NO_RPC = 1 << 0,       /* the body makes its worker itself */
    TENREC_TEST_UNCLEAN = 1 << 1,      /* leave by an immediate shutdown */
    TENREC_TEST_IGNORE_LEAKS = 1 << 2, /* skip the check for leaks of a worker */
    TENREC_TEST_TCP_STORE = 1 << 3,    /* meet in a TCP store (processes only) */
};

/* Zero means the default everywhere. In the texts of lists {rank},
 * {world_size} and {group} (a name that no other group has) are replaced. All
 * pointers are borrowed until the workers have ended. */
struct tenrec_test_options {
    uint32_t size; /* sizeof(struct tenrec_test_options) */
    uint32_t mode; /* enum tenrec_test_mode */
    uint32_t flags;
    int32_t world_size;         /* 4 */
    int32_t num_worker_threads; /* as configured */
    int32_t num_fail_sends;     /* as configured; for faults, see below */
    int64_t timeout_ms;         /* from the first start to the last end: 60000 */

    const char *config;      /* a file; NULL: config_text, or the
                                default of tenrec_worker_new */
    const char *config_text; /* YAML */
    const char *backend;     /* the outermost; as configured */

    /* Lists "key=value", ended by NULL, set after the configuration was read. */
    const char *const *settings;        /* "worker.rpc_timeout=5s" */
    const char *const *backend_options; /* of that backend: "channels=[basic]" */

    /* Fault injection: options of the outermost backend under torch's names.
     * NULL keeps the configured list, an empty list means none. */
    const char *const *messages_to_fail;  /* "RREF_USER_DELETE" */
    const char *const *messages_to_delay; /* "CALL=1.5s" */

    tenrec_test_setup_fn *setup;
    tenrec_test_body_fn *body;
    void *arg;                   /* handed to both */
    tenrec_test_guard_fn *guard; /* cmocka's when its header was seen */
    uint64_t reserved[8];        /* zero */
};

/* Starts the workers, lets each run the body, shuts them down together, and checks for leaks:
 * unanswered calls, remote references, file descriptors, threads, and under LeakSanitizer memory
 * (processes).
 *
 * If a body fails, its worker ends without a shutdown, and the others get a moment to end.
 *
 * err      of the worker that failed first: its name before the text, and in
 *          worker and worker_name
 * errors   the error of a body; EREMOTE (an assertion failed), EPEER_LOST (a worker crashed or
 *          exited, with its status), ETIMEDOUT (names the place of the hang), EBUSY (names the
 *          leaks), EINVAL, ECONFIG, EOS, ENOMEM
 * threads  the main thread, when the mode is processes
 * source   dist_init of torch/testing/_internal/dist_utils.py
 */
tenrec_status tenrec_test_dist_init(const struct tenrec_test_options *options, tenrec_error *err);

/* The configuration that the worker of `t` is made from, for a body that makes a worker itself.
 *
 * ret      the caller owns it; tenrec_config_drop
 * errors   ECONFIG, EINVAL, EOS, ENOMEM
 */
tenrec_status tenrec_test_make_config(const struct tenrec_test *t, struct tenrec_config **ret,
                                      tenrec_error *err);

/* Ends the calling worker without notice to the others: a process by SIGKILL, a thread by an
 * immediate shutdown, after which the body returns. The test does not fail, and the others leave
 * by an immediate shutdown, too. */
void tenrec_test_die(const struct tenrec_test *t);

/* ---- driven from outside --------------------------------------------------- */

struct tenrec_test_group; /* opaque */

/* Starts workers that serve until the group is closed; without a body. As
 * processes only those above rank 0 are: rank 0 is in this one.
 *
 * ret      owns: tenrec_test_group_close it
 * errors   as tenrec_test_dist_init
 */
tenrec_status tenrec_test_group_open(const struct tenrec_test_options *options,
                                     struct tenrec_test_group **ret, tenrec_error *err);

/* The worker of `rank`, borrowed until the group is closed. NULL for a worker in another
 * process. */
struct tenrec_worker *tenrec_test_group_worker(const struct tenrec_test_group *g, int32_t rank);

/* Sends a signal to the process of a worker. A thread can only be ended, by
 * SIGKILL: it shuts down at once. A killed worker does not fail the close, which is an immediate
 * shutdown then.
 *
 * errors   EINVAL (no such worker, or rank 0), EUNSUPPORTED (another signal to
 *          a thread), ESHUTDOWN (has ended), EOS
 */
tenrec_status tenrec_test_group_kill(struct tenrec_test_group *g, int32_t rank, int signal,
                                     tenrec_error *err);

/* Shuts all workers down, checks for leaks, and frees the group in any case. NULL is allowed.
 *
 * errors   as tenrec_test_dist_init
 */
tenrec_status tenrec_test_group_close(struct tenrec_test_group *g, enum tenrec_shutdown_mode mode,
                                      tenrec_error *err);

/* ---- torch's helpers --------------------------------------------------------- */

/* `ms` of a plain build, stretched for this one. */
int64_t tenrec_test_stretch_ms(int64_t ms);

/* The default name of a worker.
 *
 * ret      is returned
 * source   worker_name
 */
const char *tenrec_test_worker_name(int32_t rank, char ret[TENREC_NAME_MAX + 1]);

/* Sets the faults that a group starts with; NULL leaves a list unchanged.
 *
 * source   RpcAgentTestFixture.setup_fault_injection
 */
void tenrec_test_setup_fault_injection(struct tenrec_test_options *options,
                                       const char *const *messages_to_fail,
                                       const char *const *messages_to_delay);

/* One thread for functions that may block.
 *
 * source   single_threaded_process_group_agent
 */
void tenrec_test_set_single_threaded(struct tenrec_test_options *options);

/* A function without effect that every worker of the kit serves.
 *
 * source   noop
 */
#define TENREC_TEST_NOOP "tenrec_test_noop"

/* Calls TENREC_TEST_NOOP on `rank` until a call fails; each call has a second.
 *
 * code     the expected error; TENREC_OK: EPEER_LOST, ECONNECT or ETIMEDOUT, except injected
 *          failures
 * ret_why  may be NULL; the error of the call
 * errors   ETIMEDOUT (with the result of the last call)
 * source   wait_until_node_failure, which waits for ever
 */
tenrec_status tenrec_test_wait_until_node_failure(struct tenrec_worker *w, int32_t rank,
                                                  tenrec_status code, int64_t ms,
                                                  tenrec_error *ret_why, tenrec_error *err);

/* Waits until the control messages of remote references that `w` has sent are
 * answered, and its references confirmed by their owners. Counters of references are stable
 * then.
 *
 * errors   ETIMEDOUT (with both remaining numbers), ESHUTDOWN
 * source   wait_until_pending_futures_and_users_flushed
 */
tenrec_status tenrec_test_wait_until_pending_futures_and_users_flushed(struct tenrec_worker *w,
                                                                       int64_t ms,
                                                                       tenrec_error *err);

/* Returns the number of referenced values that `rank` owns, and of references to them.
 *
 * errors   those of tenrec_rpc_sync
 * source   get_num_owners_and_forks
 */
tenrec_status tenrec_test_get_num_owners_and_forks(struct tenrec_worker *w, int32_t rank,
                                                   int64_t *ret_owners, int64_t *ret_forks,
                                                   tenrec_error *err);

/* Waits until the numbers are these.
 *
 * errors   ETIMEDOUT (with the present numbers), those of tenrec_rpc_sync
 * source   wait_until_owners_and_forks_on_rank
 */
tenrec_status tenrec_test_wait_until_owners_and_forks_on_rank(struct tenrec_worker *w,
                                                              int64_t owners, int64_t forks,
                                                              int32_t rank, int64_t ms,
                                                              tenrec_error *err);

/* Opens a process group without RPC, for tests that break RPC: barriers over the
 * store of the test.
 *
 * init_method  t->init_method
 * ret          owns: tenrec_process_group_drop it
 * errors       those of tenrec_store_open and tenrec_process_group_new
 * source       initialize_pg
 */
tenrec_status tenrec_test_initialize_pg(const char *init_method, int32_t rank, int32_t world_size,
                                        struct tenrec_process_group **ret, tenrec_error *err);

/* The first event of a session whose name contains `part`.
 *
 * p        stopped
 * ret      borrowed until the session is dropped
 * errors   ENOTFOUND (with the number of events, and the name of the first)
 * source   get_function_event
 */
tenrec_status tenrec_test_get_function_event(const struct tenrec_profiler *p, const char *part,
                                             const struct tenrec_event **ret, tenrec_error *err);

/* ---- cmocka ------------------------------------------------------------------ */

#if defined(CMOCKA_H_) && defined(run_test)
/* Never grows: only the inline functions below use it. */
struct tenrec_test_cmocka_call {
    void (*fn)(void *arg);
    void *arg;
};

static inline void tenrec_test_cmocka_run(void **state)
{
    struct tenrec_test_cmocka_call *call = (struct tenrec_test_cmocka_call *)*state;

    call->fn(call->arg);
}

/* Catches an assertion that fails on this thread. Its type suppresses output on success. */
static inline bool tenrec_test_cmocka_guard(const char *name, void (*fn)(void *arg), void *arg)
{
    struct tenrec_test_cmocka_call call = { fn, arg };
    void *state = &call;

    return _run_test(name, tenrec_test_cmocka_run, &state, UNIT_TEST_FUNCTION_TYPE_SETUP, NULL) ==
           0;
}

static inline tenrec_status tenrec_test_cmocka_dist_init(const struct tenrec_test_options *options,
                                                         tenrec_error *err)
{
    struct tenrec_test_options o;

    if (!options || options->guard)
        return tenrec_test_dist_init(options, err);
    o = *options;
    o.guard = tenrec_test_cmocka_guard;
    return tenrec_test_dist_init(&o, err);
}
#define tenrec_test_dist_init(options, err) tenrec_test_cmocka_dist_init(options, err)

/* The call succeeds, else the test fails with the text of *err. */
#define tenrec_test_assert_ok(call, err)                                                           \
    do {                                                                                           \
        if ((call) != TENREC_OK)                                                                   \
            fail_msg("%s: %s: %s", #call, tenrec_status_name((err)->code), (err)->text);           \
    } while (0)
#endif

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
