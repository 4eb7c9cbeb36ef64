/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - versions of weights from a trainer to generators, one of which dies:
 *
 *     tenrec run --elastic 4:4 --restarts 1 -- weights [VERSIONS [SLOT]]
 *
 * Slot 0 trains, and publishes a version after each step. The others pull the newest version, from
 * the trainer or from each other, and generate with it. With SLOT this generator kills itself in
 * the middle: the others go on, the run restarts it, and it begins with the newest version. All end
 * alike. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/profiler.h>
#include <tenrec/tenrec.h>
#include <tenrec/weights.h>

enum { WORDS = 256, SPOKEN = 6, SLOTS_MAX = 64, VERSIONS = 30, STEP_MS = 20, WAIT_MS = 20000 };

static atomic_int trained; /* the version that the trainer of this process has published */

static tenrec_status scores_new(struct tenrec_tensor **ret, tenrec_error *err)
{
    const tenrec_status st =
        tenrec_tensor_new(TENREC_FLOAT32, 2, (int64_t[]){ WORDS, WORDS }, ret, err);

    if (!st)
        memset(tenrec_tensor_data(*ret), 0, (size_t)tenrec_tensor_bytes(*ret));
    return st;
}

/* ---- the trainer ---------------------------------------------------------------------------- */

/* A score moves towards a noise of its version. */
static void train_step(struct tenrec_worker *w, struct tenrec_tensor *weights, int version)
{
    struct tenrec_profiler_mark *m = tenrec_profiler_mark_begin(w, "train"); /* in a trace */
    float *score = tenrec_tensor_data(weights);
    uint64_t noise = (uint64_t)version;

    for (int i = 0; i < WORDS * WORDS; i++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        score[i] = score[i] * 0.9f + (float)(noise >> 40) / (1 << 24);
    }
    poll(NULL, 0, STEP_MS); /* a model of use takes its time */
    tenrec_profiler_mark_end(m);
}

/* The set copies the weights, so the next step changes them at once. */
static tenrec_status train(struct tenrec_worker *w, struct tenrec_weights *set,
                           struct tenrec_tensor *weights, int last, int slots, tenrec_error *err)
{
    const struct tenrec_weights_box box = { .size = sizeof box,
                                            .name = "score",
                                            .tensor = weights };

    for (int version = 1; version <= last; version++) {
        train_step(w, weights, version);
        if (tenrec_weights_publish(set, version, &box, 1, NULL, err))
            return err->code;
        atomic_store(&trained, version);
    }
    printf("trainer: version %d is the last\n", last);
    /* Until all generators have spoken, a restarted one among them. */
    return tenrec_weights_wait(set, last, (size_t)slots - 1, WAIT_MS, NULL, err);
}

static void joined(struct tenrec_worker *w, const struct tenrec_worker_info *info, uint64_t view,
                   void *arg)
{
    const int version = atomic_load(&trained);

    (void)w, (void)view, (void)arg;
    if (version > 0) /* of the trainer alone, and only after the start */
        printf("trainer: %s is back at version %d\n", info->name, version);
}

static void left(struct tenrec_worker *w, const struct tenrec_worker_info *info,
                 const tenrec_error *why, uint64_t view, void *arg)
{
    const int version = atomic_load(&trained);

    (void)w, (void)info, (void)view, (void)arg;
    if (version > 0 && why->code != TENREC_OK)
        printf("trainer: lost at version %d: %s\n", version, why->text);
}

/* ---- a generator ---------------------------------------------------------------------------- */

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

static tenrec_status generate(struct tenrec_weights *set, struct tenrec_tensor *weights, int slot,
                              int last, int dies_at, tenrec_error *err)
{
    const struct tenrec_weights_box box = { .size = sizeof box,
                                            .name = "score",
                                            .tensor = weights };
    struct tenrec_weights_options o = { .size = sizeof o, .timeout_ms = WAIT_MS };
    char text[SPOKEN * 12] = "";
    int64_t have = 0;
    int taken = 0;

    for (; have < last; taken++) { /* a slow generator skips versions */
        o.after = have;
        if (tenrec_weights_pull(set, TENREC_WEIGHTS_LATEST, &box, 1, &o, &have, err))
            return err->code;
        speak(weights, text, sizeof text);
        if (taken == 0)
            printf("generator %d: begins with version %d\n", slot, (int)have);
        if (have >= dies_at)
            raise(SIGKILL);
    }
    printf("generator %d: %d versions, number %d says%s\n", slot, taken, (int)have, text);
    return tenrec_weights_report(set, last, NULL, err);
}

/* ---- both ----------------------------------------------------------------------------------- */

static int number(const char *text, int otherwise)
{
    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

static tenrec_status take_part(struct tenrec_worker *w, int last, int kill, int slots,
                               tenrec_error *err)
{
    const bool first_life = number(getenv("TORCHELASTIC_RESTART_COUNT"), 0) == 0;
    struct tenrec_tensor *weights = NULL;
    struct tenrec_weights *set = NULL;
    struct tenrec_worker_info me;

    /* The first lives begin together. A later one finds the others at work, or gone. */
    if (tenrec_get_worker_info(w, NULL, &me, err) ||
        (first_life && tenrec_group_wait_members(w, (size_t)slots, WAIT_MS, err)))
        return err->code;
    if (!scores_new(&weights, err) && !tenrec_weights_open(w, "scores", "worker0", &set, err)) {
        if (me.id == 0)
            err->code = train(w, set, weights, last, slots, err);
        else
            err->code = generate(set, weights, me.id, last,
                                 me.id == kill && first_life ? last / 3 : last + 1, err);
    }
    tenrec_weights_close(set);
    tenrec_tensor_drop(weights);
    return err->code;
}

static tenrec_status work(struct tenrec_worker *w, int last, int kill, tenrec_error *err)
{
    const struct tenrec_member_callbacks c = { .size = sizeof c, .joined = joined, .left = left };
    const int slots = number(getenv("TENREC_MAX_WORKERS"), 0);

    if (slots < 2 || slots > SLOTS_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "expected tenrec run --elastic N:N");
    if (tenrec_worker_set_member_callbacks(w, &c, err) || tenrec_init_rpc(w, err) ||
        take_part(w, last, kill, slots, err))
        return err->code;
    return tenrec_shutdown(w, TENREC_GRACEFUL, WAIT_MS, err);
}

int main(int argc, char **argv)
{
    const int last = number(argc > 1 ? argv[1] : NULL, VERSIONS);
    const int kill = number(argc > 2 ? argv[2] : NULL, -1);
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool ok;

    setvbuf(stdout, NULL, _IOLBF, 0); /* the lines of a worker that is killed, too */
    ok = tenrec_worker_new(NULL, &w, &err) == TENREC_OK && work(w, last, kill, &err) == TENREC_OK;
    if (!ok)
        fprintf(stderr, "weights: %s\n", err.text);
    tenrec_worker_drop(w);
    return !ok;
}
