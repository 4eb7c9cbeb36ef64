/* SPDX-License-Identifier: Apache-2.0 */
/* recorder_test.c - dumps of workers that run, on the backend named in argv. */
#include <tenrec/observe.h>

#include "core/base/clock.h"
#include "observe/recorder/recorder.h"
#include "observe/recorder/reporter.h"
#include "rpc/call/observe.h"

#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#include <dirent.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct cluster two;

/* ---- a handler that blocks --------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool released;
static atomic_int standing;

/* Not static: it is found by name in a stack. */
void recorder_test_stands_here(void) __attribute__((noinline));
void recorder_test_stands_here(void)
{
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&standing, 1);
    while (!released)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static tenrec_status stand(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg, (void)err;
    recorder_test_stands_here();
    return TENREC_OK;
}

static struct tenrec_call *_Atomic unanswered;

static tenrec_status answer_later(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg, (void)err;
    atomic_store(&unanswered, c);
    return TENREC_OK;
}

static void setup(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    functions_offer(w, "stand", stand, TENREC_POOL);
    functions_offer(w, "stand_inline", stand, TENREC_INLINE);
    functions_offer(w, "module.a_function_that_answers_later", answer_later, TENREC_LATER);
}

/* A thread that calls, as the caller's thread may run an inline handler. */
struct caller {
    pthread_t thread;
    const char *function;
};

static void *call_stand(void *arg)
{
    const struct caller *c = arg;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(two.worker[0], "worker1", c->function, NULL, 0, NULL, NULL, &err),
                  &err);
    return NULL;
}

/* Returns once the handler stands there. */
static void hold(struct caller *c, const char *function)
{
    const int before = atomic_load(&standing);
    const uint64_t until = clock_deadline_ms(CLUSTER_LONG_MS);

    pthread_mutex_lock(&lock);
    released = false;
    pthread_mutex_unlock(&lock);
    c->function = function;
    assert_int_equal(pthread_create(&c->thread, NULL, call_stand, c), 0);
    while (atomic_load(&standing) == before)
        assert_false(clock_passed(until));
}

/* Releases all handlers; waits for the caller of one. */
static void release(struct caller *c)
{
    pthread_mutex_lock(&lock);
    released = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    assert_int_equal(pthread_join(c->thread, NULL), 0);
}

/* ---- the log ------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char logged[16384];

static void on_line(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)level, (void)part;
    pthread_mutex_lock(&log_lock);
    if (strlen(logged) + strlen(text) + 2 < sizeof logged) {
        strcat(logged, text);
        strcat(logged, "\n");
    }
    pthread_mutex_unlock(&log_lock);
}

/* How often a text was logged. */
static int log_count(const char *text)
{
    int n = 0;

    pthread_mutex_lock(&log_lock);
    for (const char *p = logged; (p = strstr(p, text)); p++)
        n++;
    pthread_mutex_unlock(&log_lock);
    return n;
}

static void await_lines(const char *text, int n)
{
    const uint64_t until = clock_deadline_ms(CLUSTER_LONG_MS);

    while (log_count(text) < n)
        if (clock_passed(until))
            fail_msg("'%s' was not logged, but:\n%s", text, logged);
}

static void open_two(const char *const *extra)
{
    pthread_mutex_lock(&log_lock);
    logged[0] = '\0';
    pthread_mutex_unlock(&log_lock);
    tenrec_log_set_callback(on_line, NULL);
    cluster_open(&two, 2, extra, setup);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
    tenrec_log_set_callback(NULL, NULL);
}

/* ---- dumps --------------------------------------------------------------------- */

static const struct tenrec_value *field(const struct tenrec_value *map, const char *key,
                                        enum tenrec_value_type type)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    assert_non_null(v);
    assert_int_equal(v->type, type);
    return v;
}

static const char *field_text(const struct tenrec_value *map, const char *key)
{
    return field(map, key, TENREC_VALUE_TEXT)->u.text;
}

static int64_t field_int(const struct tenrec_value *map, const char *key)
{
    return field(map, key, TENREC_VALUE_INT)->u.integer;
}

static struct tenrec_value *dump_of(size_t from, const char *to)
{
    struct tenrec_value *v = NULL;
    tenrec_error err;

    assert_status(tenrec_worker_inspect(two.worker[from], to, TENREC_INSPECT_DUMP, NULL, &v, &err),
                  &err);
    return v;
}

/* The only row of the list in which `key` is `text`; NULL: none. */
static const struct tenrec_value *row_of(const struct tenrec_value *dump, const char *list,
                                         const char *key, const char *text)
{
    const struct tenrec_value *rows = field(dump, list, TENREC_VALUE_ARRAY), *found = NULL;

    for (uint64_t i = 0; i < rows->n; i++)
        if (strcmp(field_text(&rows->u.array[i], key), text) == 0) {
            assert_null(found);
            found = &rows->u.array[i];
        }
    return found;
}

static bool has_frame(const struct tenrec_value *handler, const char *function)
{
    const struct tenrec_value *stack = field(handler, "stack", TENREC_VALUE_ARRAY);

    for (uint64_t i = 0; i < stack->n; i++)
        if (strncmp(stack->u.array[i].u.text, function, strlen(function)) == 0)
            return true;
    return false;
}

/* musl lists no frames. */
static void assert_stands(const struct tenrec_value *handler)
{
#ifdef TENREC_HAVE_EXECINFO
    assert_string_equal(field_text(handler, "no_stack"), "");
    assert_true(has_frame(handler, "recorder_test_stands_here"));
#else
    assert_string_equal(field_text(handler, "no_stack"), "this C library lists no frames");
#endif
}

static json_t *trace_of(const struct tenrec_value *dump)
{
    json_error_t why;
    json_t *trace = json_loads(field_text(dump, "trace"), 0, &why);

    if (!trace)
        fail_msg("line %d: %s in %s", why.line, why.text, field_text(dump, "trace"));
    return trace;
}

/* How many entries have that phase, category and name, and for its args `key`. */
static int entries_of(const json_t *trace, const char *phase, const char *category,
                      const char *name, const char *key)
{
    const json_t *e, *list = json_object_get(trace, "traceEvents");
    size_t i;
    int n = 0;

    json_array_foreach((json_t *)list, i, e)
    {
        if (strcmp(json_string_value(json_object_get(e, "ph")), phase) == 0 &&
            strcmp(json_string_value(json_object_get(e, "cat")), category) == 0 &&
            strcmp(json_string_value(json_object_get(e, "name")), name) == 0 &&
            (!key || json_object_get(json_object_get(e, "args"), key)))
            n++;
    }
    return n;
}

/* A handler is noted as ended after its answer was sent. */
static void await_no_handler(size_t worker, const char *function)
{
    const uint64_t until = clock_deadline_ms(CLUSTER_LONG_MS);
    struct tenrec_value *v = dump_of(worker, NULL);

    while (row_of(v, "handlers", "function", function)) {
        assert_false(clock_passed(until));
        tenrec_value_drop(v);
        v = dump_of(worker, NULL);
    }
    tenrec_value_drop(v);
}

TEST(a_blocked_handler_is_named_with_its_stack)
{
    const struct tenrec_value *h, *c;
    struct tenrec_value *v;
    struct caller f;

    open_two(NULL);
    hold(&f, "stand");
    v = dump_of(0, "worker1");
    h = row_of(v, "handlers", "function", "stand");
    assert_non_null(h);
    assert_string_equal(field_text(h, "caller"), "worker0");
    assert_string_equal(field_text(h, "state"), "runs");
    assert_true(field_int(h, "ns") >= 0 && field_int(h, "thread") > 0);
    assert_stands(h);
    tenrec_value_drop(v);
    v = dump_of(0, NULL);
    c = row_of(v, "waits", "function", "stand");
    assert_non_null(c);
    assert_string_equal(field_text(c, "callee"), "worker1");
    assert_true(field_int(c, "ns") >= 0 && field_int(c, "left_ns") > 0);
    tenrec_value_drop(v);
    release(&f);
    close_two();
}

TEST(without_stacks_no_thread_is_interrupted)
{
    static const char *const extra[] = { "observe.stacks=false", NULL };
    const struct tenrec_value *h;
    struct tenrec_value *v;
    struct caller f;

    open_two(extra);
    hold(&f, "stand");
    v = dump_of(0, "worker1");
    h = row_of(v, "handlers", "function", "stand");
    assert_non_null(h);
    assert_false(has_frame(h, "recorder_test_stands_here"));
    assert_string_not_equal(field_text(h, "no_stack"), "");
    tenrec_value_drop(v);
    release(&f);
    close_two();
}

TEST(the_trace_has_calls_that_ended_and_a_call_that_has_not)
{
    static const char *const extra[] = { "observe.recorder=true", NULL };
    struct tenrec_value *v;
    struct caller f;
    json_t *trace;

    open_two(extra);
    functions_must_call_add(two.worker[0], "worker1");
    hold(&f, "stand");
    v = dump_of(0, NULL);
    trace = trace_of(v);
    assert_true(field(v, "recorder", TENREC_VALUE_BOOL)->u.boolean);
    assert_int_equal(entries_of(trace, "b", "call", "add", "status"), 1);
    assert_int_equal(entries_of(trace, "e", "call", "add", NULL), 1);
    assert_int_equal(entries_of(trace, "b", "call", "stand", "unfinished_us"), 1);
    assert_int_equal(entries_of(trace, "X", "serve", "stand", "unfinished_us"), 1);
    assert_true(entries_of(trace, "i", "event", "started worker1", "status") >= 1);
    json_decref(trace);
    tenrec_value_drop(v);
    release(&f);
    close_two();
}

TEST(a_handler_that_answers_later_lasts_until_it_has_answered)
{
    static const char *const extra[] = { "observe.recorder=true", NULL };
    static const char name[] = "function_that_answers_later", *const cut = name + 3;
    const uint64_t until = clock_deadline_ms(CLUSTER_LONG_MS);
    struct tenrec_value *v;
    struct tenrec_future *f;
    json_t *trace;
    tenrec_error err;

    atomic_store(&unanswered, NULL);
    open_two(extra);
    assert_status(tenrec_rpc_async(two.worker[0], "worker1", "module.a_function_that_answers_later",
                                   NULL, 0, NULL, &f, &err),
                  &err);
    while (!atomic_load(&unanswered))
        assert_false(clock_passed(until));
    v = dump_of(1, NULL);
    trace = trace_of(v);
    assert_int_equal(
        entries_of(trace, "b", "serve", "module.a_function_that_answers_later", "unfinished_us"),
        1);
    json_decref(trace);
    tenrec_value_drop(v);
    tenrec_call_finish(atomic_load(&unanswered), NULL);
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(f);
    await_no_handler(1, "module.a_function_that_answers_later");
    v = dump_of(1, NULL);
    trace = trace_of(v);
    assert_int_equal(entries_of(trace, "b", "serve", cut, "status"), 1);
    assert_int_equal(entries_of(trace, "b", "call", cut, "status"), 1);
    json_decref(trace);
    tenrec_value_drop(v);
    close_two();
}

TEST(what_ends_after_the_recorder_was_turned_off_has_ended)
{
    static const char *const extra[] = { "observe.recorder=true", NULL };
    struct tenrec_value *v;
    struct caller f;
    json_t *trace;

    open_two(extra);
    hold(&f, "stand_inline");
    for (size_t i = 0; i < 2; i++)
        observe_turn(two.worker[i], OBSERVER_RECORDER, false);
    release(&f);
    await_no_handler(1, "stand_inline");
    v = dump_of(1, NULL);
    trace = trace_of(v);
    assert_int_equal(entries_of(trace, "b", "call", "stand_inline", "unfinished_us"), 0);
    assert_int_equal(entries_of(trace, "X", "serve", "stand_inline", "unfinished_us"), 0);
    assert_int_equal(entries_of(trace, "X", "serve", "stand_inline", "status"), 1);
    json_decref(trace);
    tenrec_value_drop(v);
    close_two();
}

TEST(rare_events_are_recorded_without_the_recorder)
{
    const struct tenrec_call_options soon = { .size = sizeof soon, .timeout_ms = 1 };
    struct tenrec_value *v;
    struct caller f;
    json_t *trace;
    tenrec_error err;

    open_two(NULL);
    hold(&f, "stand");
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "stand", NULL, 0, &soon, NULL, &err),
                     TENREC_ETIMEDOUT);
    assert_int_not_equal(
        tenrec_rpc_sync(two.worker[0], "worker1", "absent", NULL, 0, NULL, NULL, &err), TENREC_OK);
    release(&f);
    v = dump_of(0, NULL);
    trace = trace_of(v);
    assert_int_equal(entries_of(trace, "i", "event", "timed out stand", "call"), 1);
    assert_true(entries_of(trace, "i", "event", "refused request ", "call") >= 1);
    json_decref(trace);
    tenrec_value_drop(v);
    close_two();
}

TEST(an_inline_handler_that_blocks_is_known_to_the_recorder)
{
    static const char *const extra[] = { "observe.recorder=true", NULL };
    const struct tenrec_value *h;
    struct tenrec_value *v;
    struct caller f;

    open_two(extra);
    hold(&f, "stand_inline");
    v = dump_of(1, NULL); /* its messages are not read now */
    h = row_of(v, "handlers", "function", "stand_inline");
    assert_non_null(h);
    assert_string_equal(field_text(h, "caller"), "worker0");
    assert_string_equal(field_text(h, "state"), "runs");
    assert_stands(h);
    tenrec_value_drop(v);
    release(&f);
    await_no_handler(1, "stand_inline");
    close_two();
}

TEST(a_stuck_handler_is_named_once)
{
    static const char *const extra[] = { "worker.stuck_after=100ms", NULL };
    struct caller f, second;

    open_two(extra);
    hold(&f, "stand");
    await_lines("'stand', called by 'worker0', has run for", 1);
#ifdef TENREC_HAVE_EXECINFO
    await_lines("recorder_test_stands_here+0x", 1);
#endif
    hold(&second, "stand");
    await_lines("'stand', called by 'worker0'", 2); /* the first would have been named again */
    recorder_set_stuck_after(two.worker[1], 3600000);
    assert_int_equal(log_count("'stand', called by 'worker0'"), 2);
    release(&f);
    release(&second);
    close_two();
}

/* ---- a reporter that is busy ---------------------------------------------------- */

enum { REPORTS = 16 }; /* of a kind that may be queued */

static bool reports_go_on;

static void report_waits(struct report *r)
{
    (void)r;
    pthread_mutex_lock(&lock);
    while (!reports_go_on)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* Queues reports that wait, as many of a kind as there may be. */
static void fill_reporter(enum report_kind kind)
{
    static struct report report[REPORTS + 1];
    tenrec_error err;

    reports_go_on = false;
    for (size_t i = 0; i <= REPORTS; i++)
        report[i].run = report_waits;
    for (size_t i = 0; i < REPORTS; i++)
        assert_status(reporter_run(&report[i], kind, &err), &err);
    assert_int_equal(reporter_run(&report[REPORTS], kind, &err), TENREC_EBUSY);
}

static void let_reports_go_on(void)
{
    pthread_mutex_lock(&lock);
    reports_go_on = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Returns true if each recorder has looked for stuck handlers since then. */
static bool looked_since(uint64_t ns)
{
    bool all = true;

    for (struct recorder *r = recorders_lock(); r; r = r->next)
        all = all && r->mark[0].at_ns >= ns;
    recorders_unlock();
    return all;
}

static void with_a_busy_reporter(enum report_kind kind)
{
    static const char *const extra[] = { "worker.stuck_after=100ms", NULL };
    struct caller f;
    uint64_t stuck_ns;

    open_two(extra);
    fill_reporter(kind);
    hold(&f, "stand");
    stuck_ns = clock_now_ns() + 200 * UINT64_C(1000000);
    assert_becomes(looked_since(stuck_ns));
    assert_int_equal(log_count("'stand', called by 'worker0', has run for"), 0);
    let_reports_go_on();
    await_lines("'stand', called by 'worker0', has run for", 1);
    release(&f);
    close_two();
}

TEST(a_stuck_handler_is_named_while_peers_ask_for_dumps)
{
    with_a_busy_reporter(REPORT_ASKED);
}

TEST(a_stuck_handler_is_named_when_its_first_report_found_no_place)
{
    with_a_busy_reporter(REPORT_OWN);
}

/* ---- files --------------------------------------------------------------------- */

/* The only file of the folder; fails if there are more. */
static bool only_file(const char *folder, char *path, size_t size)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%s/%s", folder, e->d_name);
            n++;
        }
    closedir(d);
    assert_true(n <= 1);
    return n == 1;
}

TEST(a_call_that_takes_too_long_writes_one_file)
{
    char folder[] = "/tmp/tenrec-recorder-XXXXXX", path[512], dump_dir[64];
    const char *extra[] = { "worker.stuck_after=100ms", dump_dir, NULL };
    struct caller f;
    struct stat st;
    json_t *trace;

    assert_non_null(mkdtemp(folder));
    snprintf(dump_dir, sizeof dump_dir, "observe.dump_dir=%s", folder);
    open_two(extra);
    hold(&f, "stand");
    await_lines("wrote '/tmp/tenrec-recorder-", 1);
    release(&f);
    close_two();
    assert_int_equal(log_count("wrote '"), 1);
    assert_true(only_file(folder, path, sizeof path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    trace = json_load_file(path, 0, NULL);
    assert_non_null(trace);
    assert_int_equal(entries_of(trace, "X", "serve", "stand", "unfinished_us"), 1);
    json_decref(trace);
    unlink(path);
    rmdir(folder);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
