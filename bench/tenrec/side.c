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

struct tenrec_worker *side_worker(const struct side *s, int rank)
{
    const char *more = getenv("BENCH_TENREC");
    const bool within = !strcmp(s->via, "shm");
    const char *ways = within ? "transports: [shm, uv], channels: [cma, basic]"
                              : "transports: [uv], channels: [basic]";
    const bool open = within || !strcmp(s->via, "uv");
    struct tenrec_config *c;
    struct tenrec_worker *w;
    tenrec_error err;
    char text[1024];

    snprintf(text, sizeof text,
             "worker: { name: \"w{rank}\", rank: %d, world_size: %d }\n"
             "init_method: file://%s\n"
             "security: { mode: %s%s%s }\n"
             "backend: tensorpipe\n"
             "backends:\n"
             "  tensorpipe: { plugin: tensorpipe, options: { %s, progress: %s%s%s } }\n",
             rank, s->world, s->store, open ? "none" : s->via,
             open ? "" : ", secret_file: ", open ? "" : s->secret, ways, s->progress,
             more ? ", " : "", more ? more : "");
    if (tenrec_config_parse(text, "bench", &c, &err) || tenrec_worker_new(c, &w, &err))
        side_give_up(&err);
    tenrec_config_drop(c);
    return w;
}

void side_end_worker(struct tenrec_worker *w)
{
    tenrec_error err;

    if (tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err))
        side_give_up(&err);
    tenrec_worker_drop(w);
}
