/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_test.c - where the time of calls goes: group G17 of docs/internals/parity.md.
 * The functions take no tensors: what is recorded are calls. */
#include "parity.h"

#include "parity_functions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/profiler.h>
#include <unistd.h>

/* ---- what the workers serve beside functions.h ------------------------------------ */

/* udf: records "##forward##" with "step" in it. */
static tenrec_status udf(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_profiler_mark *forward =
        tenrec_profiler_mark_begin(tenrec_call_worker(c), "##forward##");
    struct tenrec_profiler_mark *step = tenrec_profiler_mark_begin(tenrec_call_worker(c), "step");

    (void)arg, (void)err;
    tenrec_profiler_mark_end(step);
    tenrec_profiler_mark_end(forward);
    return TENREC_OK;
}

static void answered(struct tenrec_future *f, void *arg)
{
    tenrec_call_finish(arg, tenrec_future_error(f));
}

/* slow_async_add(to): answers when udf has on `to`. */
static tenrec_status slow_async_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f;
    const char *to;
    tenrec_status st = tenrec_call_get_args(c, err, "s", &to);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_rpc_async(tenrec_call_worker(c), to, "udf", NULL, 0, NULL, &f, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_future_add_callback(f, answered, c, err);
    tenrec_future_drop(f);
    return st;
}

/* The sessions of the whole process, the innermost last. */
static struct tenrec_profiler *global[2];
static size_t globals;

static tenrec_status profile_enter(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_profiler_options o = { .size = sizeof o, .scope = TENREC_PROFILE_SERVER };

    (void)c, (void)arg;
    return tenrec_profiler_start(NULL, &o, &global[globals++], err);
}

/* profile_exit: the names of what the innermost session has recorded. */
static tenrec_status profile_exit(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_profiler *p = global[--globals];
    tenrec_status st = tenrec_profiler_stop(p, err);
    struct tenrec_value names[32], all;
    size_t n = tenrec_profiler_count(p);

    (void)arg;
    if (n > 32)
        n = 32;
    for (size_t i = 0; i < n; i++)
        names[i] = tenrec_value_text(tenrec_profiler_event(p, i)->name);
    all = tenrec_value_array(names, n);
    if (st == TENREC_OK)
        st = tenrec_call_return(c, &all, err);
    tenrec_profiler_drop(p);
    return st;
}

static tenrec_status setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
        uint32_t flags;
    } more[] = {
        { "udf", udf, TENREC_POOL },
        { "slow_async_add", slow_async_add, TENREC_LATER },
        { "profile_enter", profile_enter, TENREC_POOL },
        { "profile_exit", profile_exit, TENREC_POOL },
    };
    tenrec_status st = functions_setup(w, rank, arg, err);

    for (size_t i = 0; i < sizeof more / sizeof more[0] && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, more[i].name, more[i].fn, NULL, more[i].flags, err);
    return st;
}

/* ---- sessions ------------------------------------------------------------------------ */

static struct tenrec_profiler *profile(const struct tenrec_test *t)
{
    struct tenrec_profiler *p;
    tenrec_error err;

    assert_status(tenrec_profiler_start(t->worker, NULL, &p, &err), &err);
    return p;
}

static void end(struct tenrec_profiler *p)
{
    tenrec_error err;

    assert_status(tenrec_profiler_stop(p, &err), &err);
}

/* "rpc_async#udf(worker1 -> worker2)"; one of a few static buffers per thread. */
static const char *key_of(const char *mode, const char *function, const char *from, const char *to)
{
    static _Thread_local char key[4][512];
    static _Thread_local unsigned n;
    char *at = key[n++ % 4];

    snprintf(at, sizeof key[0], "%s#%s(%s -> %s)", mode, function, from, to);
    return at;
}

/* The event of exactly this name, which there must be once. */
static const struct tenrec_event *only(const struct tenrec_profiler *p, const char *name)
{
    const struct tenrec_event *found = NULL, *e;

    for (size_t i = 0; (e = tenrec_profiler_event(p, i)); i++) {
        if (strcmp(e->name, name) == 0) {
            assert_null(found);
            found = e;
        }
    }
    if (!found)
        fail_msg("there is no '%s'", name);
    return found;
}

static const struct tenrec_event *only_remote(const struct tenrec_profiler *p, const char *key,
                                              const char *name)
{
    char whole[2048];

    snprintf(whole, sizeof whole, "%.1500s#remote_op: %s", key, name);
    return only(p, whole);
}

static void call_udf(const struct tenrec_test *t, const char *to)
{
    struct tenrec_future *f = ask_async(t, to, "udf", NULL, 0);

    wait_ok(f);
    tenrec_future_drop(f);
}

/* ---- the cases ------------------------------------------------------------------------- */

/* Until the creation is known to have ended, and so is recorded. */
static void make_remote(const struct tenrec_test *t, const char *to, const char *function,
                        const struct tenrec_value *args, size_t n)
{
    struct tenrec_value *here;
    struct tenrec_future *f;
    struct tenrec_rref *r;
    tenrec_error err;

    assert_status(tenrec_remote(t->worker, to, function, args, n, NULL, &r, &err), &err);
    assert_status(tenrec_rref_to_here(r, NULL, &here, &err), &err);
    tenrec_value_drop(here);
    assert_status(tenrec_rref_future(r, &f, &err), &err);
    wait_ok(f);
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
}

/* One way to call the worker `k` further on, in an event of its own or not. */
static void profile_call(const struct tenrec_test *t, const char *mode, const char *function,
                         bool in_record, int k)
{
    struct tenrec_profiler *p = profile(t);
    struct tenrec_profiler_mark *r =
        in_record ? tenrec_profiler_mark_begin(t->worker, "foo") : NULL;
    const struct tenrec_event *e, *foo;
    const char *to = next_worker(t, k);
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };

    if (strcmp(mode, "rpc_sync") == 0) {
        tenrec_value_drop(ask(t, to, function, args, 2));
    } else if (strcmp(mode, "remote") == 0) {
        make_remote(t, to, function, args, 2);
    } else {
        struct tenrec_future *f = ask_async(t, to, function, args, 2);
        wait_ok(f);
        tenrec_future_drop(f);
    }
    tenrec_profiler_mark_end(r);
    end(p);
    e = tenrec_profiler_get_function_event(p, mode);
    assert_string_equal(e->name, key_of(mode, function, t->name, to));
    assert_int_equal(e->worker_id, t->rank);
    assert_int_equal(only_remote(p, e->name, function)->worker_id, t->rank + k);
    if (in_record) {
        foo = only(p, "foo");
        assert_ptr_equal(tenrec_profiler_event(p, 0), foo); /* then the call */
        assert_ptr_equal(tenrec_profiler_event(p, 1), e);
        assert_true(foo->start_ns <= e->start_ns);
        assert_true(foo->start_ns + foo->duration_ns >= e->start_ns + e->duration_ns);
    }
    tenrec_profiler_drop(p);
}

struct plan {
    const char *mode, *function;
};

static tenrec_status with_rpc(const struct tenrec_test *t, tenrec_error *err)
{
    const struct plan *plan = t->arg;

    (void)err;
    if (t->rank == 1) {
        profile_call(t, plan->mode, plan->function, false, 1);
        profile_call(t, plan->mode, plan->function, true, 1);
        if (strcmp(plan->mode, "remote") == 0)
            profile_call(t, plan->mode, plan->function, false, 0);
    }
    return TENREC_OK;
}

static tenrec_status build_key(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_profiler *p;
    const struct tenrec_event *e;

    (void)err;
    if (t->rank != 1)
        return TENREC_OK;
    p = profile(t);
    call_udf(t, next_worker(t, 1));
    end(p);
    e = tenrec_profiler_get_function_event(p, "udf");
    assert_text_has(e->name, "rpc_async");
    assert_text_has(e->name, "worker1");
    assert_text_has(e->name, "worker2");
    tenrec_profiler_drop(p);
    return TENREC_OK;
}

static tenrec_status remote_events(const struct tenrec_test *t, tenrec_error *err)
{
    static const char *const expected[] = { "udf", "##forward##", "step" };

    (void)err;
    for (int k = 1; t->rank == 1 && k < t->world_size; k++) {
        struct tenrec_profiler *p = profile(t);
        const char *to = next_worker(t, k), *key = key_of("rpc_async", "udf", t->name, to);
        call_udf(t, to);
        end(p);
        assert_int_equal(only(p, key)->remote, 0);
        for (size_t i = 0; i < 3; i++) {
            const struct tenrec_event *e = only_remote(p, key, expected[i]);
            assert_int_equal(e->remote, 1);
            assert_int_equal(e->worker_id, (t->rank + k) % t->world_size);
        }
        tenrec_profiler_drop(p);
    }
    return TENREC_OK;
}

struct sender {
    const struct tenrec_test *t;
    const char *to;
    size_t wrong;
};

/* A thread with a session of its own: asserts are the main thread's. */
static void *send_profiled(void *arg)
{
    struct sender *s = arg;
    const char *key = key_of("rpc_async", "udf", s->t->name, s->to);
    struct tenrec_profiler *p = NULL;
    tenrec_error err;
    struct tenrec_future *f;

    s->wrong = 1;
    if (tenrec_profiler_start(s->t->worker, NULL, &p, &err) != TENREC_OK)
        return NULL;
    if (tenrec_rpc_async(s->t->worker, s->to, "udf", NULL, 0, NULL, &f, &err) == TENREC_OK) {
        s->wrong = tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, &err) != TENREC_OK;
        tenrec_future_drop(f);
    }
    s->wrong += tenrec_profiler_stop(p, &err) != TENREC_OK || tenrec_profiler_count(p) != 4;
    for (size_t i = 0; i < tenrec_profiler_count(p); i++)
        s->wrong += strncmp(tenrec_profiler_event(p, i)->name, key, strlen(key)) != 0;
    tenrec_profiler_drop(p);
    return NULL;
}

static tenrec_status key_names(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    for (int k = 1; t->rank == 1 && k < t->world_size; k++) {
        struct sender s[2] = { { t, next_worker(t, k), 0 }, { t, next_worker(t, k), 0 } };
        pthread_t thread[2];
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, send_profiled, &s[i]), 0);
        for (size_t i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        assert_int_equal(s[0].wrong + s[1].wrong, 0);
    }
    return TENREC_OK;
}

static tenrec_status async_function(const struct tenrec_test *t, tenrec_error *err)
{
    const char *first = next_worker(t, 1), *second = next_worker(t, 2);
    const struct tenrec_value to = tenrec_value_text(second);
    struct tenrec_profiler *p;
    struct tenrec_future *f;
    char key[1024];

    (void)err;
    if (t->rank != 1)
        return TENREC_OK;
    p = profile(t);
    f = ask_async(t, first, "slow_async_add", &to, 1);
    wait_ok(f);
    tenrec_future_drop(f);
    end(p);
    snprintf(key, sizeof key, "%s#remote_op: %s",
             key_of("rpc_async", "slow_async_add", t->name, first),
             key_of("rpc_async", "udf", first, second));
    assert_int_equal(only(p, key)->remote, 1);
    assert_int_equal(only(p, key)->worker_id, t->rank + 1);
    assert_int_equal(only_remote(p, key, "step")->worker_id, (t->rank + 2) % t->world_size);
    tenrec_profiler_drop(p);
    return TENREC_OK;
}

static tenrec_status remote_record(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    for (int k = 1; t->rank == 1 && k < t->world_size; k++) {
        struct tenrec_profiler *p = profile(t);
        const char *to = next_worker(t, k), *key = key_of("rpc_async", "udf", t->name, to);
        const struct tenrec_event *forward, *step;
        call_udf(t, to);
        end(p);
        forward = only_remote(p, key, "##forward##");
        step = only_remote(p, key, "step");
        assert_int_equal(forward->worker_id, (t->rank + k) % t->world_size);
        assert_true(step->start_ns >= forward->start_ns);
        assert_true(step->start_ns + step->duration_ns <= forward->start_ns + forward->duration_ns);
        tenrec_profiler_drop(p);
    }
    return TENREC_OK;
}

static tenrec_status export_trace(const struct tenrec_test *t, tenrec_error *err)
{
    static const char *const expected[] = { "rpc_async#udf(worker1 -> worker2)", "\"##forward##\"",
                                            "\"step\"" };
    char path[] = "/tmp/tenrec-parity-XXXXXX", text[16384];
    struct tenrec_profiler *p;
    FILE *file;
    size_t n;
    int fd;

    if (t->rank != 1)
        return TENREC_OK;
    p = profile(t);
    call_udf(t, next_worker(t, 1));
    end(p);
    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_status(tenrec_profiler_write(p, path, err), err);
    tenrec_profiler_drop(p);
    file = fopen(path, "r");
    assert_non_null(file);
    n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    unlink(path);
    text[n] = '\0';
    for (size_t i = 0; i < 3; i++)
        assert_text_has(text, expected[i]);
    return TENREC_OK;
}

static bool has(const struct tenrec_value *names, const char *name)
{
    for (uint64_t i = 0; i < names->n; i++)
        if (strcmp(names->u.array[i].u.text, name) == 0)
            return true;
    return false;
}

static tenrec_status server_global(const struct tenrec_test *t, tenrec_error *err)
{
    const char *to = next_worker(t, 1);
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };
    struct tenrec_value *inner, *outer;

    (void)err;
    if (t->rank != 0)
        return TENREC_OK;
    tenrec_value_drop(ask(t, to, "profile_enter", NULL, 0));
    tenrec_value_drop(ask(t, to, "add", args, 2));
    tenrec_value_drop(ask(t, to, "profile_enter", NULL, 0));
    tenrec_value_drop(ask(t, to, "my_id", NULL, 0));
    inner = ask(t, to, "profile_exit", NULL, 0);
    outer = ask(t, to, "profile_exit", NULL, 0);
    assert_true(has(inner, "my_id"));
    assert_false(has(inner, "add"));
    assert_true(has(outer, "my_id"));
    assert_true(has(outer, "add"));
    tenrec_value_drop(inner);
    tenrec_value_drop(outer);
    return TENREC_OK;
}

static void set_flag(struct tenrec_future *f, void *arg)
{
    (void)f;
    atomic_store((atomic_bool *)arg, true);
}

static tenrec_status record_ends_with_future(const struct tenrec_test *t, tenrec_error *err)
{
    atomic_bool done = false;
    struct tenrec_profiler *p;
    struct tenrec_profiler_mark *r;
    struct tenrec_future *f;

    if (t->rank != 1)
        return TENREC_OK;
    p = profile(t);
    r = tenrec_profiler_mark_begin(t->worker, "foo");
    f = ask_async(t, "worker0", "udf", NULL, 0);
    assert_status(tenrec_profiler_mark_end_with(r, f, err), err);
    /* Callbacks run in their order, maybe when the waiters know already. */
    assert_status(tenrec_future_add_callback(f, set_flag, &done, err), err);
    wait_ok(f);
    assert_becomes(atomic_load(&done));
    tenrec_future_drop(f);
    end(p);
    assert_true(only(p, "foo")->duration_ns > 0);
    tenrec_profiler_drop(p);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const struct plan sync_udf = { "rpc_sync", "udf" }, async_udf = { "rpc_async", "udf" },
                             sync_builtin = { "rpc_sync", "add_inline" },
                             async_builtin = { "rpc_async", "add_inline" },
                             remote_udf = { "remote", "udf" },
                             remote_builtin = { "remote", "add_inline" };
#define PLAN(p) .arg = (void *)(uintptr_t) & (p)
#define SINGLE .num_worker_threads = 1
    static const struct parity_case cases[] = {
        /* test_build_rpc_profiling_key */
        { "parity_profiler_names_say_how_and_who", build_key, { .setup = setup } },
        /* test_profiler_export_trace */
        { "parity_profiler_exports_a_trace", export_trace, { .setup = setup } },
        /* test_profiler_rpc_key_names */
        { "parity_profiler_keeps_threads_apart", key_names, { .setup = setup } },
        /* test_profiler_remote_events_profiled */
        { "parity_profiler_brings_remote_events", remote_events, { .setup = setup } },
        /* test_profiler_remote_events_profiled_single_threaded */
        { "parity_profiler_brings_remote_events_of_one_thread",
          remote_events,
          { .setup = setup, SINGLE } },
        /* test_rpc_profiling_async_function */
        { "parity_profiler_follows_an_async_function", async_function, { .setup = setup } },
        /* test_rpc_profiling_async_function_single_threaded */
        { "parity_profiler_follows_an_async_function_of_one_thread",
          async_function,
          { .setup = setup, SINGLE } },
        /* test_rpc_profiling_remote_record_function */
        { "parity_profiler_brings_remote_records", remote_record, { .setup = setup } },
        /* test_profiler_with_sync_rpc_udf */
        { "parity_profiler_records_a_sync_call", with_rpc, { .setup = setup, PLAN(sync_udf) } },
        /* test_profiler_with_sync_rpc_udf_single_threaded */
        { "parity_profiler_records_a_sync_call_to_one_thread",
          with_rpc,
          { .setup = setup, SINGLE, PLAN(sync_udf) } },
        /* test_profiler_with_sync_rpc_builtin */
        { "parity_profiler_records_a_sync_call_of_a_builtin",
          with_rpc,
          { .setup = setup, PLAN(sync_builtin) } },
        /* test_profiler_with_async_rpc_udf */
        { "parity_profiler_records_an_async_call", with_rpc, { .setup = setup, PLAN(async_udf) } },
        /* test_profiler_with_async_rpc_udf_single_threaded */
        { "parity_profiler_records_an_async_call_to_one_thread",
          with_rpc,
          { .setup = setup, SINGLE, PLAN(async_udf) } },
        /* test_profiler_with_async_rpc_builtin */
        { "parity_profiler_records_an_async_call_of_a_builtin",
          with_rpc,
          { .setup = setup, PLAN(async_builtin) } },
        /* test_profiler_with_remote_udf */
        { "parity_profiler_records_a_creation", with_rpc, { .setup = setup, PLAN(remote_udf) } },
        /* test_profiler_with_remote_udf_single_threaded */
        { "parity_profiler_records_a_creation_by_one_thread",
          with_rpc,
          { .setup = setup, SINGLE, PLAN(remote_udf) } },
        /* test_profiler_with_remote_builtin */
        { "parity_profiler_records_a_creation_by_a_builtin",
          with_rpc,
          { .setup = setup, PLAN(remote_builtin) } },
        /* test_server_process_global_profiler */
        { "parity_profiler_of_the_server_nests", server_global, { .setup = setup } },
        /* test_async_record_function_double_end_callbacks: a record is given away
         * when it has to end with a future, so there is no second time */
        { "parity_record_ends_with_its_future", record_ends_with_future, { .setup = setup } },
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
