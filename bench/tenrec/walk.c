/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - two workers, the second of which calls the first; started by bench/walk, which builds
 * it so that each entered function of the libraries is noted here.
 *
 *     walk OPTIONS DIR ROUNDS
 *
 * OPTIONS are those of the tensorpipe backend, as YAML. For each round the functions that the
 * threads of either side entered go to DIR/caller.N and DIR/callee.N: "thread NAME", then a line
 * for each entry with its depth in the trace, its library and its address there. */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tenrec/tenrec.h>
#include <unistd.h>

enum { TRACKS = 8, STEPS = 1 << 16, WARM_UP = 300, QUIET_MS = 50, LIMIT_MS = 10000 };

struct step {
    void *function;
    int depth;
};

/* What one thread has entered since the round began. */
struct track {
    char name[16];
    int depth, n;
    struct step step[STEPS];
};

static struct track tracks[TRACKS];
static atomic_int n_tracks;
static atomic_bool recording;
static _Thread_local struct track *own;

static bool walk_records(void)
{
    int i;

    if (!atomic_load_explicit(&recording, memory_order_relaxed))
        return false;
    if (own)
        return true;
    i = atomic_fetch_add(&n_tracks, 1);
    if (i >= TRACKS)
        return false;
    own = &tracks[i];
    pthread_getname_np(pthread_self(), own->name, sizeof own->name);
    return true;
}

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    if (!walk_records() || own->n == STEPS)
        return;
    own->step[own->n++] = (struct step){ function, own->depth++ };
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
    if (walk_records() && own->depth > 0)
        own->depth--;
}

static void walk_begin(void)
{
    for (int i = 0; i < TRACKS; i++)
        tracks[i].depth = tracks[i].n = 0;
    atomic_store(&recording, true);
}

static void walk_end(const char *dir, const char *side, int round)
{
    char path[4096];
    FILE *out;

    atomic_store(&recording, false);
    snprintf(path, sizeof path, "%s/%s.%d", dir, side, round);
    out = fopen(path, "w");
    if (!out)
        exit(1);
    for (int i = 0; i < TRACKS; i++) {
        const struct track *t = &tracks[i];
        fprintf(out, "thread %s\n", t->name);
        for (int k = 0; k < t->n; k++) {
            Dl_info at;
            if (dladdr(t->step[k].function, &at))
                fprintf(out, "%d %s %#zx\n", t->step[k].depth, at.dli_fname,
                        (size_t)((char *)t->step[k].function - (char *)at.dli_fbase));
        }
    }
    fclose(out);
}

static void give_up(const tenrec_error *err)
{
    fprintf(stderr, "walk: %s\n", err->text);
    exit(1);
}

static struct tenrec_worker *make_worker(int rank, const char *options, const char *dir)
{
    struct tenrec_config *c = NULL;
    struct tenrec_worker *w = NULL;
    char text[4096];
    tenrec_error err;

    snprintf(text, sizeof text,
             "worker: { name: \"worker{rank}\", rank: %d, world_size: 2 }\n"
             "init_method: file://%s/store\n"
             "backend: tensorpipe\n"
             "backends:\n"
             "  tensorpipe: { plugin: tensorpipe, options: { %s } }\n",
             rank, dir, options);
    if (tenrec_config_parse(text, "walk", &c, &err) || tenrec_worker_new(c, &w, &err))
        give_up(&err);
    tenrec_config_drop(c);
    return w;
}

static void end_worker(struct tenrec_worker *w)
{
    tenrec_error err;

    if (tenrec_shutdown(w, TENREC_GRACEFUL, LIMIT_MS, &err))
        give_up(&err);
    tenrec_worker_drop(w);
}

static tenrec_status on_add(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value sum;
    const struct tenrec_value *args;
    tenrec_status st;
    int64_t a, b;
    size_t n;

    (void)arg;
    args = tenrec_call_args(call, &n);
    st = tenrec_value_unpack(args, n, err, "ii", &a, &b);
    if (st != TENREC_OK)
        return st;
    sum = tenrec_value_int(a + b);
    return tenrec_call_return(call, &sum, err);
}

/* Returns once the other side says so. */
static void await_word(int fd)
{
    char c;

    if (read(fd, &c, 1) != 1)
        exit(1);
}

static void send_word(int fd)
{
    if (write(fd, "", 1) != 1)
        exit(1);
}

static int callee_run(const char *options, const char *dir, int rounds, int in, int out)
{
    struct tenrec_worker *w = make_worker(0, options, dir);
    tenrec_error err;

    if (tenrec_worker_register_function(w, "add", on_add, NULL, 0, &err) ||
        tenrec_init_rpc(w, &err))
        give_up(&err);
    for (int i = 0; i < rounds; i++) {
        await_word(in);
        walk_begin();
        send_word(out);
        await_word(in);
        walk_end(dir, "callee", i);
        send_word(out);
    }
    end_worker(w);
    return 0;
}

static void caller_add(struct tenrec_worker *w)
{
    const struct tenrec_value args[] = { tenrec_value_int(40), tenrec_value_int(2) };
    struct tenrec_value *sum;
    tenrec_error err;

    if (tenrec_rpc_sync(w, "worker0", "add", args, 2, NULL, &sum, &err))
        give_up(&err);
    tenrec_value_drop(sum);
}

static void caller_run(const char *options, const char *dir, int rounds, int in, int out)
{
    const struct tenrec_value args[] = { tenrec_value_int(40), tenrec_value_int(2) };
    struct tenrec_worker *w = make_worker(1, options, dir);
    struct tenrec_value *sum;
    tenrec_error err;

    if (tenrec_init_rpc(w, &err))
        give_up(&err);
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < WARM_UP; k++)
            caller_add(w);
        poll(NULL, 0, QUIET_MS);
        send_word(out);
        await_word(in);
        walk_begin();
        if (tenrec_rpc_sync(w, "worker0", "add", args, 2, NULL, &sum, &err))
            give_up(&err);
        atomic_store(&recording, false);
        tenrec_value_drop(sum);
        poll(NULL, 0, QUIET_MS);
        walk_end(dir, "caller", i);
        send_word(out);
        await_word(in);
    }
    end_worker(w);
}

int main(int argc, char **argv)
{
    int there[2], back[2], status, rounds;
    pid_t callee;

    if (argc != 4 || (rounds = atoi(argv[3])) < 1 || pipe(there) || pipe(back))
        return 2;
    callee = fork();
    if (callee < 0)
        return 1;
    if (callee == 0)
        return callee_run(argv[1], argv[2], rounds, there[0], back[1]);
    close(there[0]);
    close(back[1]);
    caller_run(argv[1], argv[2], rounds, back[0], there[1]);
    return waitpid(callee, &status, 0) != callee || status != 0;
}
