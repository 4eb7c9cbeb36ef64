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

enum { WORDS = 256, SPOKEN = 6, STEP_MS = 20, WAIT_MS = 20000 };

static atomic_int trained; /* the version that the trainer of this process has published */

/* In each step a score moves towards a noise of the version. The set copies the weights, so the
 * next step changes them at once. */
static tenrec_status train(struct tenrec_worker *w, struct tenrec_weights *set,
                           const struct tenrec_weights_box *box, int last, int slots,
                           tenrec_error *err)
{
    float *score = tenrec_tensor_data(box->tensor);

    for (int version = 1; version <= last; version++) {
        struct tenrec_profiler_mark *m = tenrec_profiler_mark_begin(w, "train"); /* in a trace */
        uint64_t noise = (uint64_t)version;

        for (int i = 0; i < WORDS * WORDS; i++) {
            noise = noise * 6364136223846793005u + 1442695040888963407u;
            score[i] = score[i] * 0.9f + (float)(noise >> 40) / (1 << 24);
        }
        poll(NULL, 0, STEP_MS); /* a model of use takes its time */
        tenrec_profiler_mark_end(m);
        if (tenrec_weights_publish(set, version, box, 1, NULL, err))
            return err->code;
        atomic_store(&trained, version);
    }
    printf("trainer: version %d is the last\n", last);
    /* Until all generators have reported it, a restarted one among them. */
    return tenrec_weights_wait(set, last, (size_t)slots - 1, WAIT_MS, NULL, err);
}

static void joined(struct tenrec_worker *w, const struct tenrec_worker_info *info, uint64_t view,
                   void *arg)
{
    (void)w, (void)view, (void)arg;
    if (trained > 0) /* of the trainer alone, and only after the start */
        printf("trainer: %s is back at version %d\n", info->name, trained);
}

static void left(struct tenrec_worker *w, const struct tenrec_worker_info *info,
                 const tenrec_error *why, uint64_t view, void *arg)
{
    (void)w, (void)info, (void)view, (void)arg;
    if (trained > 0 && why->code != TENREC_OK)
        printf("trainer: lost at version %d: %s\n", trained, why->text);
}

static tenrec_status generate(struct tenrec_weights *set, const struct tenrec_weights_box *box,
                              int slot, int last, int dies_at, tenrec_error *err)
{
    struct tenrec_weights_options o = { .size = sizeof o, .timeout_ms = WAIT_MS };
    const float *score = tenrec_tensor_data(box->tensor);
    size_t word = 0;
    int taken = 0;

    for (int64_t have = 0; have < last; taken++) { /* a slow generator skips versions */
        o.after = have;
        if (tenrec_weights_pull(set, TENREC_WEIGHTS_LATEST, box, 1, &o, &have, err))
            return err->code;
        if (taken == 0)
            printf("generator %d: begins with version %d\n", slot, (int)have);
        if (have >= dies_at)
            raise(SIGKILL);
    }
    printf("generator %d: %d versions, number %d says", slot, taken, last);
    for (int n = 0; n < SPOKEN; n++) { /* the word with the highest score after this word */
        const float *row = score + word * WORDS;

        word = 0;
        for (size_t i = 0; i < WORDS; i++)
            word = row[i] > row[word] ? i : word;
        printf(" %zu", word);
    }
    printf("\n");
    return tenrec_weights_report(set, last, NULL, err);
}

static int number(const char *text, int otherwise)
{
    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

static tenrec_status work(struct tenrec_worker *w, int last, int kill, tenrec_error *err)
{
    const struct tenrec_member_callbacks c = { .size = sizeof c, .joined = joined, .left = left };
    const bool first_life = number(getenv("TORCHELASTIC_RESTART_COUNT"), 0) == 0;
    const int slots = number(getenv("TENREC_MAX_WORKERS"), 0);
    struct tenrec_weights_box box = { .size = sizeof box, .name = "score" };
    struct tenrec_weights *set = NULL;
    tenrec_status status;
    tenrec_peer rank;

    if (slots < 2)
        return tenrec_fail(err, TENREC_EINVAL, "expected tenrec run --elastic N:N");
    /* The first lives begin together. A later one finds the others at work, or gone. */
    if (tenrec_worker_set_member_callbacks(w, &c, err) || tenrec_init_rpc(w, err) ||
        (first_life && tenrec_group_wait_members(w, (size_t)slots, WAIT_MS, err)) ||
        tenrec_tensor_new(TENREC_FLOAT32, 2, (int64_t[]){ WORDS, WORDS }, &box.tensor, err))
        return err->code;
    memset(tenrec_tensor_data(box.tensor), 0, (size_t)tenrec_tensor_bytes(box.tensor));
    rank = tenrec_worker_rank(w);
    status = tenrec_weights_open(w, "scores", "worker0", &set, err);
    if (!status && rank == 0)
        status = train(w, set, &box, last, slots, err);
    else if (!status)
        status =
            generate(set, &box, rank, last, rank == kill && first_life ? last / 3 : last + 1, err);
    tenrec_weights_close(set);
    tenrec_tensor_drop(box.tensor);
    return status ? status : tenrec_shutdown(w, TENREC_GRACEFUL, WAIT_MS, err);
}

int main(int argc, char **argv)
{
    const int last = number(argc > 1 ? argv[1] : NULL, 30);
    const int kill = number(argc > 2 ? argv[2] : NULL, -1);
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool failed;

    setvbuf(stdout, NULL, _IOLBF, 0); /* the lines of a worker that is killed, too */
    failed = tenrec_worker_new(NULL, &w, &err) || work(w, last, kill, &err);
    if (failed)
        tenrec_error_print(&err, "weights");
    tenrec_worker_drop(w);
    return failed;
}
