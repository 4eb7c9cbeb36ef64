/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - publishes a version: registers its memory, or copies, and announces it. */
#include "rpc/weights/edition.h"
#include "rpc/weights/record.h"

#include "core/base/memory.h"

#include <stdlib.h>

bool edition_overlaps(const struct edition *h, const void *tensor)
{
    const char *begin = tenrec_tensor_data(tensor), *end = begin + tenrec_tensor_bytes(tensor);

    for (size_t i = 0; i < h->n && h->kind != EDITION_COPY; i++) {
        const char *data = tenrec_tensor_data(h->memory[i].tensor);
        if (data < end && begin < data + tenrec_tensor_bytes(h->memory[i].tensor))
            return true;
    }
    return false;
}

/* Memory that is published in place may not be of another version, too. */
static tenrec_status publish_check_memory(const struct tenrec_weights *s,
                                          const struct tenrec_weights_box *boxes, size_t n,
                                          tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        struct edition *h =
            edition_find(editions_of(s->w), edition_overlaps, piece_box_at(boxes, i)->tensor);
        if (h) {
            st = tenrec_fail(err, TENREC_EBUSY,
                             "its memory is that of version %lld: withdraw it first",
                             (long long)h->version);
            piece_box_prefix(boxes, i, err);
        }
        edition_drop(h);
    }
    return st;
}

struct copies_before {
    const struct tenrec_weights *of;
    int64_t version;
};

static bool edition_is_copy_before(const struct edition *h, const void *arg)
{
    const struct copies_before *before = arg;

    return h->of == before->of && h->kind == EDITION_COPY && !h->over &&
           h->version < before->version;
}

static void publish_free_copies(const struct tenrec_weights *s, int64_t oldest)
{
    const struct copies_before before = { s, oldest };
    struct edition *h;

    while ((h = edition_find(editions_of(s->w), edition_is_copy_before, &before)) != NULL) {
        edition_end(h);
        edition_drop(h);
    }
}

static tenrec_status publish_announce(const struct tenrec_weights *s, const struct edition *h,
                                      uint32_t publishers, uint64_t until_ns, tenrec_error *err)
{
    struct tenrec_value *pieces = pieces_pack(h->piece, h->n), *answer = NULL;
    tenrec_status st;

    if (!pieces)
        return memory_fail(err);
    st = handle_ask(s, RECORD_PUBLISH, h->number,
                    (struct tenrec_value[]){ tenrec_value_int(h->version),
                                             tenrec_value_int(publishers), *pieces },
                    3, until_ns, &answer, err);
    free(pieces);
    if (st == TENREC_OK && answer->type == TENREC_VALUE_INT)
        publish_free_copies(s, answer->u.integer);
    tenrec_value_drop(answer);
    return st;
}

static tenrec_status publish_boxes(const struct tenrec_weights *s, int64_t version,
                                   const struct tenrec_weights_box *boxes, size_t n,
                                   const struct tenrec_weights_options *o, struct piece *piece,
                                   tenrec_error *err)
{
    const bool in_place = o && (o->flags & TENREC_WEIGHTS_IN_PLACE);
    struct edition *h = NULL;
    uint64_t until_ns;
    tenrec_status st =
        handle_deadline(s, o ? o->timeout_ms : TENREC_TIMEOUT_DEFAULT, &until_ns, err);

    if (st == TENREC_OK)
        st = edition_new(s, in_place ? EDITION_IN_PLACE : EDITION_COPY, &h, err);
    if (st != TENREC_OK) {
        free(piece);
        return st;
    }
    st = edition_register(h, version, piece, boxes, n, err);
    if (st == TENREC_OK)
        st = publish_announce(s, h, o && o->publishers ? o->publishers : 1, until_ns, err);
    if (st != TENREC_OK) {
        handle_leave(s, h);
        edition_end(h);
    }
    edition_drop(h);
    return st;
}

tenrec_status tenrec_weights_publish(struct tenrec_weights *s, int64_t version,
                                     const struct tenrec_weights_box *boxes, size_t n,
                                     const struct tenrec_weights_options *options,
                                     tenrec_error *err)
{
    const bool in_place = options && (options->flags & TENREC_WEIGHTS_IN_PLACE);
    tenrec_error own, *why = err ? err : &own;
    struct piece *piece;
    tenrec_status st = handle_check_options(options, TENREC_WEIGHTS_IN_PLACE, why);

    if (st == TENREC_OK && version < 1)
        st =
            tenrec_fail(why, TENREC_EINVAL, "version %lld: expected 1 or more", (long long)version);
    if (st == TENREC_OK)
        st = pieces_of_boxes(boxes, n, in_place ? PIECE_READ : PIECE_COPIED, &piece, why);
    if (st != TENREC_OK)
        return st;
    editions_sweep(editions_of(s->w));
    if (in_place)
        st = publish_check_memory(s, boxes, n, why);
    if (st == TENREC_OK)
        return publish_boxes(s, version, boxes, n, options, piece, why);
    free(piece);
    return st;
}
