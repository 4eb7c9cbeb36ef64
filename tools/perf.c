/* SPDX-License-Identifier: Apache-2.0 */
/* perf.c - `tenrec perf`: measures calls between two workers of this machine.
 *
 * The command starts itself twice; rank 0 measures and prints, rank 1 answers. */
#include "entry.h"
#include "measure.h"
#include "observe/profiler/profiler.h"
#include "outside.h"
#include "rpc/call/calls.h"
#include "run/workers.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES ((int64_t)4 << 30)
#define MOST_CALLS 100000000
#define MOST_INFLIGHT 65536

enum mode { LATENCY, RATE, BANDWIDTH, N_MODES };

static const struct {
    const char *name;
    uint64_t size;
    size_t inflight, calls;
} modes[N_MODES] = {
    [LATENCY] = { "latency", 0, 1, 20000 },
    [RATE] = { "rate", 64, 64, 200000 },
    [BANDWIDTH] = { "bandwidth", (uint64_t)64 << 20, 1, 32 },
};

struct perf {
    enum mode mode;
    uint64_t size;
    int inflight, calls;
    const char *config;
    bool as_json, worker;
};

/* The setting of the measurement: a text for each of these, "" for none. */
static const char *const told[] = { "backend", "transport", "channel", "progress" };

#define N_TOLD (sizeof told / sizeof told[0])

struct setting {
    char text[N_TOLD][64];
};

/* ---- the worker ------------------------------------------------------------------- */

/* Debug info of an agent: "tensorpipe.transport". */
static void on_info(void *arg, const char *key, const char *value)
{
    struct setting *s = arg;
    const char *last = strrchr(key, '.');

    for (size_t i = 1; last && i < N_TOLD; i++)
        if (!strcmp(last + 1, told[i]))
            snprintf(s->text[i], sizeof s->text[i], "%s", value);
}

static void on_backend_name(void *arg, const char *key, const char *value, const char *source)
{
    struct setting *s = arg;

    (void)source;
    if (!strcmp(key, "backend"))
        snprintf(s->text[0], sizeof s->text[0], "%s", value);
}

/* Names, ranks and init_method of the file are for another group. */
static tenrec_status load_config(struct tenrec_config **ret, tenrec_error *err)
{
    static const char *const set[][2] = { { "init_method", "env://" },
                                          { "worker.name", "perf{rank}" },
                                          { "worker.world_size", "2" } };
    const char *rank = secure_getenv("RANK");
    tenrec_status st = tenrec_config_load(NULL, ret, err);

    if (!st)
        st = tenrec_config_set(*ret, "worker.rank", rank ? rank : "", err);
    for (size_t i = 0; !st && i < sizeof set / sizeof set[0]; i++)
        st = tenrec_config_set(*ret, set[i][0], set[i][1], err);
    return st;
}

static json_t *result_object(const struct perf *p, const struct setting *set, struct samples *s,
                             uint64_t wall_ns)
{
    json_t *r = json_object();

    json_object_set_new(r, "mode", json_string(modes[p->mode].name));
    for (size_t i = 0; i < N_TOLD; i++)
        if (*set->text[i])
            json_object_set_new(r, told[i], json_string(set->text[i]));
    json_object_set_new(r, "size_bytes", json_integer((json_int_t)p->size));
    json_object_set_new(r, "inflight", json_integer(p->inflight));
    json_object_set_new(r, "calls", json_integer(p->calls));
    if (s->n) {
        json_object_set_new(r, "p50_us", json_real(samples_us(s, 0.5)));
        json_object_set_new(r, "p99_us", json_real(samples_us(s, 0.99)));
    }
    if (wall_ns && p->mode != BANDWIDTH)
        json_object_set_new(r, "calls_per_s",
                            json_real((double)p->calls / ((double)wall_ns / 1e9)));
    if (p->mode == BANDWIDTH && s->n)
        json_object_set_new(r, "gib_per_s",
                            json_real((double)p->size / (1u << 30) / (samples_us(s, 0.5) / 1e6)));
    return r;
}

static void print_result(const struct perf *p, json_t *r)
{
    const char *key;
    json_t *v;

    if (p->as_json) {
        inspect_print_json(r);
        return;
    }
    json_object_foreach(r, key, v)
    {
        if (json_is_string(v))
            printf("%-12s %s\n", key, json_string_value(v));
        else if (json_is_integer(v))
            printf("%-12s %" JSON_INTEGER_FORMAT "\n", key, json_integer_value(v));
        else
            printf("%-12s %.6g\n", key, json_real_value(v));
    }
}

struct perf_progress {
    struct tenrec_worker *worker;
    uint64_t before, calls;
};

/* As the worker counts them: the measured loop has nothing to do with it. */
static void perf_how_far(void *arg, char *to, size_t room)
{
    const struct perf_progress *p = arg;

    snprintf(to, room, "%llu of %llu calls",
             (unsigned long long)(atomic_load(&p->worker->calls->counts.finished) - p->before),
             (unsigned long long)p->calls);
}

static tenrec_status perf_measure(const struct perf *p, struct tenrec_worker *w,
                                  struct setting *set, tenrec_error *err)
{
    struct measure m = { .worker = w,
                         .to = "perf1",
                         .size = p->size,
                         .inflight = (size_t)p->inflight,
                         .calls = (size_t)p->calls,
                         .warm = (size_t)p->calls / 10 + 1 };
    uint64_t wall_ns = 0, begin;
    struct perf_progress far;
    struct progress progress;
    struct samples s;
    tenrec_status st;

    if (samples_init(&s, p->mode == RATE ? 0 : m.calls))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu times", m.calls);
    far = (struct perf_progress){ w, atomic_load(&w->calls->counts.finished), m.warm + m.calls };
    progress_begin(&progress, p->as_json ? -1 : STDOUT_FILENO, "perf", modes[p->mode].name, 0,
                   perf_how_far, &far); /* `tenrec run` shows it, which gives rank 0 a terminal */
    begin = samples_now_ns();
    if (p->mode == LATENCY) {
        st = measure_latency(&m, &s, err);
        wall_ns = (samples_now_ns() - begin) * m.calls / (m.calls + m.warm);
    } else if (p->mode == RATE) {
        st = measure_rate(&m, &wall_ns, err);
    } else {
        st = measure_bandwidth(&m, &s, err);
    }
    progress_end(&progress);
    if (!st) {
        json_t *r;

        debug_info_list(w, on_info, set);
        r = result_object(p, set, &s, wall_ns);
        print_result(p, r);
        json_decref(r);
        st = measure_end(&m, err);
    }
    samples_finish(&s);
    return st;
}

static tenrec_status perf_work(const struct perf *p, tenrec_error *err)
{
    const char *rank = secure_getenv("RANK");
    bool callee = rank && !strcmp(rank, "1");
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    struct measure_callee c = { .buffer = NULL };
    struct setting set = { 0 };
    tenrec_status st = load_config(&config, err);

    if (!st)
        st = config_show(config, on_backend_name, &set, err);
    if (!st)
        st = tenrec_worker_new(config, &w, err);
    if (!st && callee)
        st = measure_callee_init(&c, w, p->size, TENREC_INLINE, err);
    if (!st)
        st = tenrec_init_rpc(w, err);
    if (!st && callee)
        measure_callee_wait(&c);
    else if (!st)
        st = perf_measure(p, w, &set, err);
    if (!st)
        st = tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, err);
    tenrec_worker_drop(w);
    measure_callee_finish(&c);
    tenrec_config_drop(config);
    return st;
}

/* ---- the command -------------------------------------------------------------------- */

static int start_workers(const struct tool *self, const struct perf *p, const char *mode)
{
    char size[32], inflight[32], calls[32], exe[PATH_MAX], *path = NULL;
    char *argv[] = { realpath("/proc/self/exe", exe),
                     "perf",
                     (char *)(uintptr_t)mode,
                     "--worker",
                     "--size",
                     size,
                     "--inflight",
                     inflight,
                     "--calls",
                     calls,
                     p->as_json ? "--json" : NULL,
                     NULL };
    struct workers_plan plan = { .tool = self, .argv = argv, .n = 2, .grace_ms = 2000 };
    struct tenrec_config *config = NULL;
    struct entries all;
    tenrec_error err;
    tenrec_status st;
    int rc;

    if (!argv[0])
        return tool_fail(self, "cannot find the tenrec command itself: %s", strerror(errno));
    if (p->config && !tool_readable(p->config, &path))
        return tool_fail(self, "cannot read the config '%s': %s", p->config, strerror(errno));
    /* Check the config here, so that an error is reported once, not by both workers. */
    st = tenrec_config_load(path, &config, &err);
    if (!st)
        st = entries_open(config, NULL, &all, &err);
    if (!st)
        entries_close(&all);
    tenrec_config_drop(config);
    if (st) {
        free(path);
        return tool_fail(self, "%s", err.text);
    }
    snprintf(size, sizeof size, "%llu", (unsigned long long)p->size);
    snprintf(inflight, sizeof inflight, "%d", p->inflight);
    snprintf(calls, sizeof calls, "%d", p->calls);
    plan.config = path;
    rc = workers_run(&plan);
    free(path);
    return rc;
}

static bool parse_mode(const char *word, enum mode *ret)
{
    for (size_t i = 0; i < N_MODES; i++)
        if (!strcmp(word, modes[i].name)) {
            *ret = (enum mode)i;
            return true;
        }
    return false;
}

/* Fills in the defaults; returns TOOL_OK or TOOL_MISUSED. */
static int perf_complete(const struct tool *self, struct perf *p, int argc, char **argv)
{
    if (argc - optind != 1 || !parse_mode(argv[optind], &p->mode))
        return tool_misuse(self, "expected one of latency, rate or bandwidth");
    if (p->size == UINT64_MAX)
        p->size = modes[p->mode].size;
    if (p->mode == BANDWIDTH && p->size == 0)
        return tool_misuse(self, "--size must be at least 1 for bandwidth");
    if (p->inflight && p->mode != RATE && p->inflight != 1)
        return tool_misuse(self, "--inflight requires rate");
    if (!p->inflight)
        p->inflight = (int)modes[p->mode].inflight;
    if (!p->calls)
        p->calls = (int)modes[p->mode].calls;
    return TOOL_OK;
}

static int perf_main(const struct tool *self, int argc, char **argv)
{
    struct perf p = { .size = UINT64_MAX };
    const struct tool_option option[] = {
        { "config", 'c', TOOL_TEXT, &p.config, 0, 0 },
        { "size", '\0', TOOL_SIZE, &p.size, 0, MOST_BYTES },
        { "calls", 'N', TOOL_NUMBER, &p.calls, 1, MOST_CALLS },
        { "inflight", '\0', TOOL_NUMBER, &p.inflight, 1, MOST_INFLIGHT },
        { "json", 'j', TOOL_FLAG, &p.as_json, 0, 0 },
        { "worker", '\0', TOOL_FLAG, &p.worker, 0, 0 },
    };
    tenrec_error err;
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    c = perf_complete(self, &p, argc, argv);
    if (c)
        return c;
    if (!p.worker)
        return start_workers(self, &p, argv[optind]);
    return perf_work(&p, &err) ? tool_fail(self, "%s", err.text) : TOOL_OK;
}

const struct tool tool_perf = {
    .name = "perf",
    .usage = "latency|rate|bandwidth [--config F] [--size S] [--inflight K] [--calls N] [--json]",
    .summary = "measure calls between two workers",
    .help = "Starts two workers on this machine and measures calls from one to the other.\n"
            "\n"
            "  latency    one synchronous call after the other, to a handler that runs inline\n"
            "  rate       K asynchronous calls in flight; when one ends the next is made\n"
            "  bandwidth  a tensor of S bytes into a buffer that the callee reuses\n"
            "\n"
            "  -c, --config F    the config of both, except name, rank and init_method\n"
            "      --size S      bytes per call (0, 64 and 64MiB)\n"
            "      --inflight K  concurrent calls (rate; 64)\n"
            "  -N, --calls N     number of measured calls (20000, 200000 and 32)\n"
            "  -j, --json        JSON, one object a line",
    .main = perf_main,
};
