/* SPDX-License-Identifier: Apache-2.0 */
/* trace_test.c - Chrome traces of sessions, and worker.trace. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"
#include "observe/profiler/sessions.h"
#include "profiler_functions.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tenrec/profiler.h>
#include <unistd.h>

static char folder[] = "/tmp/tenrec-trace-XXXXXX";

static void make_folder(void)
{
    assert_non_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    assert_int_equal(rmdir(folder), 0);
}

static const char *file(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Loads a trace and takes the file away. */
static json_t *load(const char *path)
{
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);

    if (!root)
        fail_msg("%s:%d:%d: %s", path, why.line, why.column, why.text);
    assert_true(json_is_array(json_object_get(root, "traceEvents")));
    unlink(path);
    return root;
}

static const char *text(const json_t *event, const char *key)
{
    const char *s = json_string_value(json_object_get(event, key));

    return s ? s : "";
}

static double number(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static size_t events(const json_t *root)
{
    return json_array_size(json_object_get(root, "traceEvents"));
}

static json_t *event(const json_t *root, size_t i)
{
    return json_array_get(json_object_get(root, "traceEvents"), i);
}

/* The only event of this phase and name; NULL when there is none. */
static json_t *find(const json_t *root, const char *ph, const char *name)
{
    json_t *found = NULL;

    for (size_t i = 0; i < events(root); i++) {
        json_t *e = event(root, i);
        if (strcmp(text(e, "ph"), ph) == 0 && strcmp(text(e, "name"), name) == 0) {
            if (found)
                fail_msg("%s '%s' was written twice", ph, name);
            found = e;
        }
    }
    return found;
}

/* The slice that an end of an arrow points into; fails when there is none. */
static const json_t *slice_of(const json_t *root, const json_t *end)
{
    for (size_t i = 0; i < events(root); i++) {
        const json_t *e = event(root, i);
        if (strcmp(text(e, "ph"), "X") == 0 && number(e, "pid") == number(end, "pid") &&
            number(e, "tid") == number(end, "tid") && number(e, "ts") == number(end, "ts"))
            return e;
    }
    fail_msg("an arrow ends nowhere");
    return NULL;
}

/* Each arrow comes from a call and leads to its function. Returns how many. */
static size_t check_arrows(const json_t *root)
{
    size_t n = 0;

    for (size_t i = 0; i < events(root); i++) {
        const json_t *end = event(root, i), *from = NULL;
        if (strcmp(text(end, "ph"), "f") != 0)
            continue;
        for (size_t k = 0; k < events(root); k++) {
            const json_t *e = event(root, k);
            if (strcmp(text(e, "ph"), "s") == 0 && number(e, "id") == number(end, "id"))
                from = e;
        }
        assert_non_null(from);
        assert_string_equal(text(slice_of(root, end), "cat"), "serve");
        assert_string_equal(text(slice_of(root, from), "cat"), "call");
        n++;
    }
    return n;
}

/* Each row of the trace has a name, and each worker. */
static void check_rows(const json_t *root)
{
    for (size_t i = 0; i < events(root); i++) {
        const json_t *e = event(root, i);
        bool worker = false, thread = false;
        for (size_t k = 0; k < events(root); k++) {
            const json_t *m = event(root, k);
            if (strcmp(text(m, "ph"), "M") != 0 || number(m, "pid") != number(e, "pid"))
                continue;
            worker = worker || strcmp(text(m, "name"), "process_name") == 0;
            thread = thread || (strcmp(text(m, "name"), "thread_name") == 0 &&
                                number(m, "tid") == number(e, "tid"));
        }
        assert_true(worker);
        assert_true(thread || strcmp(text(e, "ph"), "M") == 0);
    }
}

TEST(trace_shows_rows_and_arrows_when_calls_are_nested)
{
    const struct tenrec_value args[] = { tenrec_value_text("worker2"),
                                         tenrec_value_text("marked") };
    struct tenrec_profiler *p;
    const json_t *through, *step;
    struct cluster c;
    tenrec_error err;
    json_t *root;

    cluster_open(&c, 3, NULL, profiler_functions_register);
    assert_status(tenrec_profiler_start(c.worker[0], NULL, &p, &err), &err);
    assert_status(tenrec_rpc_sync(c.worker[0], "worker1", "through", args, 2, NULL, NULL, &err),
                  &err);
    assert_status(tenrec_profiler_stop(p, &err), &err);
    assert_status(tenrec_profiler_write(p, file("nested.json"), &err), &err);
    tenrec_profiler_drop(p);
    cluster_close(&c, TENREC_GRACEFUL);

    root = load(file("nested.json"));
    assert_int_equal(check_arrows(root), 2);
    check_rows(root);
    through = find(root, "X", "through");
    step = find(root, "X", "step");
    assert_non_null(find(root, "X", "rpc_sync#through(worker0 -> worker1)"));
    assert_non_null(find(root, "X", "rpc_sync#marked(worker1 -> worker2)"));
    assert_int_equal(number(through, "pid"), 1 + 1);
    assert_int_equal(number(step, "pid"), 2 + 1);
    assert_true(number(step, "ts") >= number(through, "ts"));
    assert_true(number(step, "dur") <= number(through, "dur"));
    assert_string_equal(text(json_object_get(step, "args"), "name"),
                        "rpc_sync#through(worker0 -> worker1)#remote_op: "
                        "rpc_sync#marked(worker1 -> worker2)#remote_op: step");
    assert_true(json_is_number(json_object_get(json_object_get(through, "args"), "queue_us")));
    assert_true(
        number(json_object_get(find(root, "X", "rpc_sync#through(worker0 -> worker1)"), "args"),
               "wire_us") > 0);
    json_decref(root);
}

TEST(trace_shows_both_times_when_a_call_is_asynchronous)
{
    struct tenrec_profiler *p;
    struct tenrec_future *f;
    struct cluster c;
    tenrec_error err;
    json_t *root;

    cluster_open(&c, 2, NULL, profiler_functions_register);
    assert_status(tenrec_profiler_start(c.worker[0], NULL, &p, &err), &err);
    functions_close_gate();
    assert_status(tenrec_rpc_async(c.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &f, &err),
                  &err);
    assert_becomes(functions_waiting() == 1);
    functions_open_gate();
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_NONE, &err), &err);
    tenrec_future_drop(f);
    assert_status(tenrec_profiler_stop(p, &err), &err);
    assert_status(tenrec_profiler_write(p, file("async.json"), &err), &err);
    tenrec_profiler_drop(p);
    cluster_close(&c, TENREC_GRACEFUL);

    root = load(file("async.json"));
    assert_int_equal(check_arrows(root), 1);
#define NAME "rpc_async#wait_gate(worker0 -> worker1)"
    assert_true(number(find(root, "X", NAME), "ts") == number(find(root, "b", NAME), "ts"));
    assert_true(number(find(root, "e", NAME), "ts") >
                number(find(root, "X", NAME), "ts") + number(find(root, "X", NAME), "dur"));
#undef NAME
    json_decref(root);
}

/* Readers leave out a slice that reaches beyond the one it lies in. */
TEST(trace_ends_slices_with_the_slices_around_them)
{
    static const struct {
        const char *name;
        uint64_t start_us, run_us, shown_us;
        uint64_t thread;
    } slices[] = {
        { "outer", 0, 100, 100, 1 }, { "within", 10, 20, 20, 1 }, { "beyond", 90, 20, 10, 1 },
        { "beside", 90, 20, 20, 2 }, { "after", 100, 50, 50, 1 }, { "nothing", 160, 0, 0, 1 },
    };
    struct tenrec_profiler p = { .events = events_new(10) };
    tenrec_error err;
    json_t *root;

    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        const struct tenrec_event e = { .name = slices[i].name,
                                        .worker_name = "w",
                                        .thread_name = "t",
                                        .thread = slices[i].thread,
                                        .call_id = -1,
                                        .kind = TENREC_EVENT_MARK,
                                        .start_ns = slices[i].start_us * 1000,
                                        .duration_ns = slices[i].run_us * 1000,
                                        .run_ns = slices[i].run_us * 1000 };
        events_add(p.events, &e, "");
    }
    assert_status(trace_json_write(&p, file("overlap.json"), false, &err), &err);
    events_drop(p.events);
    root = load(file("overlap.json"));
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        double us = number(find(root, "X", slices[i].name), "dur");
        assert_true(us > 0 && us - 0.001 <= (double)slices[i].shown_us &&
                    us >= (double)slices[i].shown_us);
    }
    json_decref(root);
}

TEST(trace_is_json_when_names_are_odd)
{
    static const char odd[] = "a \"quoted\" \\ name\n\x01 \xc3\xa9";
    struct tenrec_profiler *p;
    struct cluster c;
    tenrec_error err;
    json_t *root;

    cluster_open(&c, 1, NULL, profiler_functions_register);
    assert_status(tenrec_profiler_start(c.worker[0], NULL, &p, &err), &err);
    tenrec_profiler_mark_end(tenrec_profiler_mark_begin(c.worker[0], odd));
    tenrec_profiler_mark_end(tenrec_profiler_mark_begin(c.worker[0], "\xff\xfe"));
    assert_status(tenrec_profiler_stop(p, &err), &err);
    assert_status(tenrec_profiler_write(p, file("odd.json"), &err), &err);
    tenrec_profiler_drop(p);
    cluster_close(&c, TENREC_GRACEFUL);

    root = load(file("odd.json"));
    assert_non_null(find(root, "X", odd));
    assert_non_null(find(root, "X", "??"));
    json_decref(root);
}

TEST(trace_is_refused_when_its_file_cannot_be_written)
{
    struct tenrec_profiler *p;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 1, NULL, profiler_functions_register);
    assert_status(tenrec_profiler_start(c.worker[0], NULL, &p, &err), &err);
    for (int i = 0; i < 200; i++)
        tenrec_profiler_mark_end(tenrec_profiler_mark_begin(c.worker[0], "one of many"));
    assert_status(tenrec_profiler_stop(p, &err), &err);
    assert_int_equal(tenrec_profiler_write(p, "/nowhere/trace.json", &err), TENREC_EOS);
    assert_text_has(err.text, "'/nowhere/trace.json'");
    assert_int_equal(tenrec_profiler_write(p, "/dev/full", &err), TENREC_EOS);
    assert_text_has(err.text, "No space left");
    assert_int_equal(tenrec_profiler_write(p, "", &err), TENREC_EINVAL);
    tenrec_profiler_drop(p);
    cluster_close(&c, TENREC_GRACEFUL);
}

/* The child makes a session with a worker that never ran: it needs no thread. */
static int record_in_child(struct tenrec_worker *w)
{
    struct tenrec_profiler *p = NULL;
    tenrec_error err;
    int ok;

    if (tenrec_profiler_start(w, NULL, &p, &err) != TENREC_OK)
        return 1;
    tenrec_profiler_mark_end(tenrec_profiler_mark_begin(w, "child"));
    ok = tenrec_profiler_stop(p, &err) == TENREC_OK && tenrec_profiler_count(p) == 1 &&
         tenrec_profiler_event(p, 0)->thread == (uint64_t)getpid();
    tenrec_profiler_drop(p);
    return !ok;
}

TEST(trace_is_of_the_child_alone_after_a_fork)
{
    struct tenrec_profiler *p;
    struct tenrec_worker *w;
    tenrec_error err;
    int status = -1;
    pid_t pid;

    assert_status(tenrec_worker_new(NULL, &w, &err), &err);
    assert_status(tenrec_profiler_start(w,
                                        &(struct tenrec_profiler_options){
                                            .size = sizeof(struct tenrec_profiler_options),
                                            .scope = TENREC_PROFILE_WORKER },
                                        &p, &err),
                  &err);
    tenrec_profiler_mark_end(tenrec_profiler_mark_begin(w, "parent"));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(record_in_child(w));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_status(tenrec_profiler_stop(p, &err), &err);
    assert_int_equal(tenrec_profiler_count(p), 1);
    tenrec_profiler_drop(p);
    tenrec_worker_drop(w);
}

TEST(trace_of_a_worker_is_written_when_the_worker_ends)
{
    char setting[160];
    const char *const extra[] = { setting, NULL };
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };
    const json_t *sent, *arrived;
    struct cluster c;
    tenrec_error err;
    json_t *mine, *theirs;

    snprintf(setting, sizeof setting, "worker.trace=%s/{rank}.json", folder);
    cluster_open(&c, 2, extra, profiler_functions_register);
    assert_status(tenrec_rpc_sync(c.worker[0], "worker1", "add", args, 2, NULL, NULL, &err), &err);
    cluster_close(&c, TENREC_GRACEFUL);

    mine = load(file("0.json"));
    theirs = load(file("1.json"));
    assert_null(find(mine, "X", "add"));
    assert_non_null(find(mine, "X", "rpc_sync#add(worker0 -> worker1)"));
    assert_non_null(find(theirs, "X", "add"));
    sent = find(mine, "s", "call");
    arrived = find(theirs, "f", "call");
    assert_true(number(sent, "id") == number(arrived, "id"));
    json_decref(mine);
    json_decref(theirs);
}

TEST(trace_of_a_worker_is_refused_when_the_worker_starts)
{
    struct tenrec_config *config;
    struct tenrec_worker *w;
    tenrec_error err;

    assert_status(tenrec_config_parse("worker: { trace: \"/nowhere/{rank}.json\" }\n"
                                      "init_method: memory://alone?rank=0&world_size=1\n"
                                      "backend: b\n"
                                      "backends: { b: { plugin: inproc } }\n",
                                      "t.yaml", &config, &err),
                  &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    assert_int_equal(tenrec_init_rpc(w, &err), TENREC_EOS);
    assert_text_has(err.text, "worker.trace: cannot write '/nowhere/0.json'");
    tenrec_worker_drop(w);
}

TEST_MAIN(cluster_use(argv[1]), make_folder, remove_folder)
