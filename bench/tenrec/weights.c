/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - one of N workers of a group, started by bench/weights: rank 0 publishes a version of
 * MIB mebibytes, and the ranks from 1 to READERS pull it. Prints their times, and that of a copy by
 * memcpy that all readers make at once. */
#include "samples.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/tenrec.h>
#include <tenrec/weights.h>

enum { LIMIT_MS = 120000, BOXES = 16 };

static void must(tenrec_status st, const tenrec_error *err)
{
    if (st == TENREC_OK)
        return;
    fprintf(stderr, "weights: %s: %s\n", tenrec_status_name(st), err->text);
    exit(1);
}

static double now_ms(void)
{
    return (double)samples_now_ns() / 1e6;
}

static void barrier(struct tenrec_worker *w)
{
    tenrec_error err;

    must(tenrec_worker_barrier(w, NULL, 0, LIMIT_MS, &err), &err);
}

static struct tenrec_tensor *tensor_new(uint64_t bytes, int value)
{
    const int64_t shape = (int64_t)bytes;
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    must(tenrec_tensor_new(TENREC_UINT8, 1, &shape, &t, &err), &err);
    memset(tenrec_tensor_data(t), value, bytes); /* allocates its pages */
    return t;
}

struct run {
    struct tenrec_worker *w;
    struct tenrec_worker_info me, keeper;
    struct tenrec_weights *set;
    struct tenrec_weights_box box[BOXES];
    char name[BOXES][8];
    uint64_t bytes; /* of a box */
    bool reads;
};

static void run_open(struct run *r, uint64_t mib, int readers)
{
    tenrec_error err;

    must(tenrec_worker_new(NULL, &r->w, &err), &err);
    must(tenrec_init_rpc(r->w, &err), &err);
    must(tenrec_get_worker_info(r->w, NULL, &r->me, &err), &err);
    must(tenrec_worker_get_info_by_id(r->w, 0, &r->keeper, &err), &err);
    must(tenrec_weights_open(r->w, "bench", r->keeper.name, &r->set, &err), &err);
    r->bytes = (mib << 20) / BOXES;
    r->reads = r->me.id > 0 && r->me.id <= readers;
    for (int i = 0; i < BOXES; i++) {
        snprintf(r->name[i], sizeof r->name[i], "t%d", i);
        r->box[i] = (struct tenrec_weights_box){ .size = sizeof r->box[i],
                                                 .name = r->name[i],
                                                 .tensor = tensor_new(
                                                     r->bytes, r->me.id == 0 ? 'a' + i : 0) };
    }
}

static void run_close(struct run *r)
{
    tenrec_error err;

    tenrec_weights_close(r->set);
    must(tenrec_shutdown(r->w, TENREC_GRACEFUL, LIMIT_MS, &err), &err);
    tenrec_worker_drop(r->w);
    for (int i = 0; i < BOXES; i++)
        tenrec_tensor_drop(r->box[i].tensor);
}

/* Copies as many bytes as a pull has, from memory that no other worker has. */
static double run_copy(const struct run *r)
{
    char *from = malloc(BOXES * r->bytes);
    double begin;

    if (!from)
        abort();
    memset(from, 1, BOXES * r->bytes);
    begin = now_ms();
    for (int i = 0; i < BOXES; i++)
        memcpy(tenrec_tensor_data(r->box[i].tensor), from + (uint64_t)i * r->bytes, r->bytes);
    begin = now_ms() - begin;
    free(from);
    return begin;
}

static double run_publish(const struct run *r)
{
    const struct tenrec_weights_options o = { .size = sizeof o,
                                              .flags = TENREC_WEIGHTS_IN_PLACE,
                                              .timeout_ms = LIMIT_MS };
    const double begin = now_ms();
    tenrec_error err;

    must(tenrec_weights_publish(r->set, 1, r->box, BOXES, &o, &err), &err);
    return now_ms() - begin;
}

static double run_pull(const struct run *r)
{
    const struct tenrec_weights_options o = { .size = sizeof o, .timeout_ms = LIMIT_MS };
    const double begin = now_ms();
    tenrec_error err;

    must(tenrec_weights_pull(r->set, 1, r->box, BOXES, &o, NULL, &err), &err);
    return now_ms() - begin;
}

int main(int argc, char **argv)
{
    double publish = 0, pull = 0, copy = 0;
    struct run r = { 0 };

    if (argc != 3)
        return 2;
    run_open(&r, strtoull(argv[1], NULL, 10), atoi(argv[2]));
    barrier(r.w);
    if (r.reads)
        copy = run_copy(&r);
    barrier(r.w);
    if (r.me.id == 0)
        publish = run_publish(&r);
    barrier(r.w);
    if (r.reads)
        pull = run_pull(&r);
    barrier(r.w);
    printf("{\"rank\": %d, \"publish\": %.1f, \"pull\": %.1f, \"copy\": %.1f}\n", r.me.id, publish,
           pull, copy);
    fflush(stdout);
    run_close(&r);
    return 0;
}
