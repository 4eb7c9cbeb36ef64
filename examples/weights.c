/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - versions of weights from a trainer to generators, one of which dies:
 *
 *     tenrec run --elastic 4:4 --restarts 1 -- weights [VERSIONS [SLOT]]
 *
 * Slot 0 trains, and publishes a version after each step. The others wait for a newer version than
 * theirs, check it, and generate with it. With SLOT this generator kills itself in the middle: the
 * others go on, the run restarts it, and it begins with the newest version. All end alike. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/profiler.h>
#include <tenrec/tenrec.h>
#include <time.h>

enum { WORDS = 256, SPOKEN = 6, SLOTS_MAX = 64, VERSIONS = 30, STEP_MS = 20, WAIT_MS = 20000 };

/* FNV-1a: travels beside the weights, so that a receiver knows that it has all of them. */
static int64_t checksum(const struct tenrec_tensor *weights)
{
    const unsigned char *byte = tenrec_tensor_data(weights);
    uint64_t sum = 0xcbf29ce484222325u;

    for (uint64_t i = 0; i < tenrec_tensor_bytes(weights); i++)
        sum = (sum ^ byte[i]) * 0x100000001b3u;
    return (int64_t)sum;
}

/* ---- the trainer ---------------------------------------------------------------------------- */

struct trainer {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t moved;
    struct tenrec_tensor *weights; /* replaced, never changed: generators map its memory */
    int64_t version, last, sum;
    struct tenrec_call *waiting[SLOTS_MAX]; /* for a newer version, by id */
    bool done[SLOTS_MAX];                   /* has the last version */
};

/* With the lock: answers with [version, checksum, weights], or with nil if the caller has the last
 * version. The weights are shared, not copied, whatever their size. */
static void answer(const struct trainer *t, struct tenrec_call *call, bool done)
{
    const struct tenrec_value item[] = { tenrec_value_int(t->version), tenrec_value_int(t->sum),
                                         tenrec_value_tensor(t->weights) };
    const struct tenrec_value v = done ? tenrec_value_nil() : tenrec_value_array(item, 3);
    tenrec_error err;

    tenrec_call_finish(call, tenrec_call_return(call, &v, &err) == TENREC_OK ? NULL : &err);
}

/* pull(have): answers as soon as there is a newer version than `have`. So a caller gets each one at
 * once, or the newest if it was too slow, and the trainer never waits. */
static tenrec_status pull(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const tenrec_peer id = tenrec_call_from(call).id;
    struct tenrec_call *former;
    struct trainer *t = arg;
    int64_t have;

    if (tenrec_call_get_args(call, err, "i", &have))
        return err->code;
    if (id < 1 || id >= SLOTS_MAX || have < 0)
        return tenrec_fail(err, TENREC_EINVAL, "worker %d is no generator with a version", (int)id);
    pthread_mutex_lock(&t->lock);
    former = t->waiting[id];
    t->done[id] = have == t->last;
    t->waiting[id] = have < t->version || t->done[id] ? NULL : call;
    if (!t->waiting[id])
        answer(t, call, t->done[id]);
    if (former) /* of a former life, which was killed while it waited */
        answer(t, former, true);
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
    return TENREC_OK;
}

static void publish(struct trainer *t, struct tenrec_tensor *weights)
{
    const int64_t sum = checksum(weights);

    pthread_mutex_lock(&t->lock);
    tenrec_tensor_drop(t->weights); /* generators that still read it keep it */
    t->weights = weights;
    t->sum = sum;
    t->version++;
    for (int id = 1; id < SLOTS_MAX; id++)
        if (t->waiting[id]) {
            answer(t, t->waiting[id], false);
            t->waiting[id] = NULL;
        }
    pthread_mutex_unlock(&t->lock);
}

/* Makes the next weights in memory of their own. A score moves towards a noise of its version. */
static tenrec_status train_step(const struct trainer *t, struct tenrec_tensor **ret,
                                tenrec_error *err)
{
    const struct tenrec_tensor_options o = { .size = sizeof o, .flags = TENREC_SHARED };
    const float *before = t->weights ? tenrec_tensor_data(t->weights) : NULL;
    uint64_t noise = (uint64_t)t->version;
    float *after;

    if (tenrec_tensor_new_with(TENREC_FLOAT32, 2, (int64_t[]){ WORDS, WORDS }, &o, ret, err))
        return err->code;
    after = tenrec_tensor_data(*ret);
    for (int i = 0; i < WORDS * WORDS; i++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        after[i] = (before ? before[i] * 0.9f : 0) + (float)(noise >> 40) / (1 << 24);
    }
    poll(NULL, 0, STEP_MS); /* a model of use takes its time */
    return TENREC_OK;
}

/* Waits until all generators have the last version, a restarted generator among them. */
static tenrec_status await_generators(struct trainer *t, int slots, tenrec_error *err)
{
    struct timespec until;
    int id = 1, error = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&t->lock);
    for (; id < slots && !error; id += t->done[id])
        error = t->done[id] ? 0 : pthread_cond_timedwait(&t->moved, &t->lock, &until);
    pthread_mutex_unlock(&t->lock);
    if (error)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "generator %d did not take the last version", id);
    return TENREC_OK;
}

static tenrec_status train(struct tenrec_worker *w, struct trainer *t, int slots, tenrec_error *err)
{
    struct tenrec_tensor *weights;

    while (t->version < t->last) { /* only this thread changes them */
        struct tenrec_profiler_mark *m = tenrec_profiler_mark_begin(w, "train");
        const tenrec_status status = train_step(t, &weights, err);

        tenrec_profiler_mark_end(m); /* seen in a trace */
        if (status)
            return status;
        publish(t, weights);
    }
    printf("trainer: version %d is the last\n", (int)t->version);
    return await_generators(t, slots, err);
}

static void joined(struct tenrec_worker *w, const struct tenrec_worker_info *info, uint64_t view,
                   void *arg)
{
    struct trainer *t = arg;

    (void)w, (void)view;
    pthread_mutex_lock(&t->lock);
    if (t->version > 0) /* of the trainer alone, and only after the start */
        printf("trainer: %s is back at version %d\n", info->name, (int)t->version);
    pthread_mutex_unlock(&t->lock);
}

static void left(struct tenrec_worker *w, const struct tenrec_worker_info *info,
                 const tenrec_error *why, uint64_t view, void *arg)
{
    struct trainer *t = arg;

    (void)w, (void)info, (void)view;
    pthread_mutex_lock(&t->lock);
    if (t->version > 0 && why->code != TENREC_OK)
        printf("trainer: lost at version %d: %s\n", (int)t->version, why->text);
    pthread_mutex_unlock(&t->lock);
}

/* ---- a generator ---------------------------------------------------------------------------- */

/* Reads an answer of pull, which may be any view of anything, and checks its bits. Drop *ret. */
static tenrec_status take(const struct tenrec_value *v, int64_t *have, struct tenrec_tensor **ret,
                          tenrec_error *err)
{
    struct tenrec_tensor *sent;
    int64_t version, sum;

    if (v->type != TENREC_VALUE_ARRAY)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the trainer sent no version");
    if (tenrec_value_unpack(v->u.array, v->n, err, "iit", &version, &sum, &sent) ||
        tenrec_tensor_contiguous(sent, ret, err))
        return err->code;
    if (version > *have && tenrec_tensor_count(*ret) == (uint64_t)WORDS * WORDS &&
        strcmp(tenrec_dtype_name(tenrec_tensor_desc(*ret)->dtype), "float32") == 0 &&
        checksum(*ret) == sum) {
        *have = version;
        return TENREC_OK;
    }
    tenrec_tensor_drop(*ret);
    return tenrec_fail(err, TENREC_EPROTOCOL, "version %lld after %lld is not what was published",
                       (long long)version, (long long)*have);
}

/* The word with the highest score after each word, from word 0 on. */
static void speak(const struct tenrec_tensor *weights, char *text, size_t room)
{
    const float *score = tenrec_tensor_data(weights);
    size_t word = 0, at = 0;

    for (int n = 0; n < SPOKEN; n++) {
        const float *row = score + word * WORDS;

        word = 0;
        for (size_t i = 0; i < WORDS; i++)
            word = row[i] > row[word] ? i : word;
        at += (size_t)snprintf(text + at, room - at, " %zu", word);
    }
}

static tenrec_status generate(struct tenrec_worker *w, int slot, int64_t dies_at, tenrec_error *err)
{
    const struct tenrec_call_options options = { .size = sizeof options, .timeout_ms = WAIT_MS };
    struct tenrec_value *got;
    char text[SPOKEN * 12] = "";
    int64_t have = 0;
    int taken = 0;

    for (;; taken++) {
        const struct tenrec_value arg = tenrec_value_int(have);
        struct tenrec_tensor *weights = NULL;
        tenrec_status status = tenrec_rpc_sync(w, "worker0", "pull", &arg, 1, &options, &got, err);

        if (status)
            return status;
        if (got->type == TENREC_VALUE_NIL)
            break;
        status = take(got, &have, &weights, err);
        if (!status) {
            speak(weights, text, sizeof text);
            tenrec_tensor_drop(weights); /* with got the last share: its memory is used again */
        }
        tenrec_value_drop(got);
        if (status)
            return status;
        if (taken == 0)
            printf("generator %d: begins with version %d\n", slot, (int)have);
        if (have >= dies_at)
            raise(SIGKILL);
    }
    tenrec_value_drop(got);
    printf("generator %d: %d versions, number %d says%s\n", slot, taken, (int)have, text);
    return TENREC_OK;
}

/* ---- both ----------------------------------------------------------------------------------- */

static int number(const char *text, int otherwise)
{
    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

static tenrec_status work(struct tenrec_worker *w, struct trainer *t, int kill, tenrec_error *err)
{
    const struct tenrec_member_callbacks c = {
        .size = sizeof c, .joined = joined, .left = left, .arg = t
    };
    const int slots = number(getenv("TENREC_MAX_WORKERS"), 0);
    const bool first_life = number(getenv("TORCHELASTIC_RESTART_COUNT"), 0) == 0;
    struct tenrec_worker_info me;

    if (slots < 2 || slots > SLOTS_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "expected tenrec run --elastic N:N");
    if (tenrec_worker_register_function(w, "pull", pull, t, TENREC_LATER, err) ||
        tenrec_worker_set_member_callbacks(w, &c, err) || tenrec_init_rpc(w, err) ||
        tenrec_get_worker_info(w, NULL, &me, err))
        return err->code;
    /* The first lives begin together. A later one finds the others at work, or gone. */
    if (first_life && tenrec_group_wait_members(w, (size_t)slots, WAIT_MS, err))
        return err->code;
    if (me.id == 0 ? train(w, t, slots, err)
                   : generate(w, me.id, me.id == kill && first_life ? t->last / 3 : INT64_MAX, err))
        return err->code;
    return tenrec_shutdown(w, TENREC_GRACEFUL, WAIT_MS, err);
}

int main(int argc, char **argv)
{
    struct trainer t = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };
    const int kill = number(argc > 2 ? argv[2] : NULL, -1);
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool ok;

    setvbuf(stdout, NULL, _IOLBF, 0); /* the lines of a worker that is killed, too */
    t.last = number(argc > 1 ? argv[1] : NULL, VERSIONS);
    ok = tenrec_worker_new(NULL, &w, &err) == TENREC_OK && work(w, &t, kill, &err) == TENREC_OK;
    if (!ok)
        fprintf(stderr, "weights: %s\n", err.text);
    tenrec_worker_drop(w);
    tenrec_tensor_drop(t.weights);
    return !ok;
}
