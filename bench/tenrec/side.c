/* SPDX-License-Identifier: Apache-2.0 */
#include "side.h"

#include "../pair.h"
#include "samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void side_give_up(const tenrec_error *err)
{
    fprintf(stderr, "bench: tenrec: %s: %s\n", tenrec_status_name(err->code), err->text);
    exit(1);
}

void side_pause_ms(unsigned ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

    nanosleep(&t, NULL);
}

/* A secret of this run, which no stranger could guess in its time. */
static void side_make_secret(const struct side *s)
{
    FILE *f;
    int fd = open(s->secret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || !(f = fdopen(fd, "w")))
        pair_die("cannot write the secret");
    for (int i = 0; i < 4; i++)
        fprintf(f, "%016llx", (unsigned long long)samples_now_ns() * 0x9e3779b97f4a7c15u);
    if (fclose(f))
        pair_die("cannot write the secret");
}

struct side *side_new(const char *via, const char *progress, int world)
{
    struct side *s = pair_memory(sizeof *s, true);

    snprintf(s->folder, sizeof s->folder, "/tmp/tenrec-bench-XXXXXX");
    if (!mkdtemp(s->folder))
        pair_die("cannot make a folder in /tmp");
    snprintf(s->store, sizeof s->store, "%s/store", s->folder);
    snprintf(s->secret, sizeof s->secret, "%s/secret", s->folder);
    side_make_secret(s);
    snprintf(s->via, sizeof s->via, "%s", via);
    snprintf(s->progress, sizeof s->progress, "%s", progress);
    s->world = world;
    return s;
}

void side_drop(struct side *s)
{
    unlink(s->store);
    unlink(s->secret);
    rmdir(s->folder);
}

#define LAYERS 10 /* a single one is lost in what calls vary by */

/* Appends an entry of `backends`, and moves `outermost` to it. */
static void side_wrap(char *text, size_t room, char outermost[16], const char *name,
                      const char *plugin, const char *options)
{
    const size_t n = strlen(text);

    snprintf(text + n, room - n, "  %s: { plugin: %s, wraps: %s, options: { %s } }\n", name, plugin,
             outermost, options);
    snprintf(outermost, 16, "%s", name);
}

/* The layers around tensorpipe that `via` asks for. Those of "layers" read each message and do
 * nothing to it. */
static void side_layers(const char *via, char *text, size_t room, char outermost[16])
{
    char name[16];

    if (!strcmp(via, "trace"))
        side_wrap(text, room, outermost, via, via, "file: /dev/null");
    else if (!strcmp(via, "meter"))
        side_wrap(text, room, outermost, via, via, "");
    else if (!strcmp(via, "limit"))
        side_wrap(text, room, outermost, via, via, "calls_per_second: 1e9");
    for (int i = 1; !strcmp(via, "layers") && i <= LAYERS; i++) {
        snprintf(name, sizeof name, "layer%d", i);
        side_wrap(text, room, outermost, name, "trace", "file: /dev/null, peers: [32767]");
    }
}

/* The settings of `observe:`. Without a collector spans are made and dropped. */
static const char *side_observe(const char *via)
{
    return !strcmp(via, "traces")      ? "traces: 'http://127.0.0.1:9'"
           : !strcmp(via, "durations") ? "durations: true"
           : !strcmp(via, "recorder")  ? "durations: true, recorder: true"
                                       : "";
}

struct tenrec_worker *side_worker(const struct side *s, int rank)
{
    const char *more = getenv("BENCH_TENREC");
    const bool ucx = !strcmp(s->via, "ucx");
    const char *wire = ucx ? "ucx" : "tensorpipe";
    char layers[1536] = "", backend[16];

    snprintf(backend, sizeof backend, "%s", wire);
    side_layers(s->via, layers, sizeof layers, backend);
    const char *observe = side_observe(s->via);
    const bool within = !strcmp(s->via, "shm") || *observe || *layers;
    const char *ways = ucx      ? "tls: [tcp]"
                       : within ? "transports: [shm, uv], channels: [cma, basic]"
                                : "transports: [uv], channels: [basic]";
    const bool open = within || ucx || !strcmp(s->via, "uv");
    struct tenrec_config *c;
    struct tenrec_worker *w;
    tenrec_error err;
    char text[2560];

    snprintf(text, sizeof text,
             "worker: { name: \"w{rank}\", rank: %d, world_size: %d }\n"
             "init_method: file://%s\n"
             "security: { mode: %s%s%s }\n"
             "observe: { %s }\n"
             "backend: %s\n"
             "backends:\n"
             "  %s: { plugin: %s, options: { %s, progress: %s%s%s } }\n%s",
             rank, s->world, s->store, open ? "none" : s->via,
             open ? "" : ", secret_file: ", open ? "" : s->secret, observe, backend, wire, wire,
             ways, s->progress, more ? ", " : "", more ? more : "", layers);
    if (tenrec_config_parse(text, "bench", &c, &err) || tenrec_worker_new(c, &w, &err))
        side_give_up(&err);
    tenrec_config_drop(c);
    return w;
}

struct tenrec_tensor *side_tensor(size_t size, bool shared)
{
    const struct tenrec_tensor_options o = { .size = sizeof o,
                                             .flags = shared ? TENREC_SHARED : 0 };
    int64_t shape = (int64_t)size;
    struct tenrec_tensor *t;
    tenrec_error err;

    if (tenrec_tensor_new_with(TENREC_UINT8, 1, &shape, &o, &t, &err))
        side_give_up(&err);
    pair_fill(tenrec_tensor_data(t), size);
    return t;
}

void side_end_worker(struct tenrec_worker *w)
{
    tenrec_error err;

    if (tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err))
        side_give_up(&err);
    tenrec_worker_drop(w);
}
