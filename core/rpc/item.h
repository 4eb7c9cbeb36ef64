/* SPDX-License-Identifier: Apache-2.0 */
/* item.h - reads single data items of CBOR (RFC 8949). Definite lengths only. */
#ifndef TENREC_RPC_ITEM_H
#define TENREC_RPC_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

enum item_kind {
    ITEM_INT, /* of either sign */
    ITEM_BYTES,
    ITEM_TEXT,
    ITEM_ARRAY,
    ITEM_MAP,
    ITEM_TAG,
    ITEM_NIL,
    ITEM_BOOL,
    ITEM_DOUBLE,
    ITEM_BAD, /* well-formed but not for us; see item_next */
};

struct item {
    uint64_t n;       /* bytes of text and bytes, items of an array, pairs of a map; tag */
    size_t at;        /* where it begins */
    const char *data; /* of text and bytes; borrowed from what is read */
    const char *why;  /* of a bad one */
    int64_t integer;
    double number;
    enum item_kind kind;
    bool boolean;
};

struct item_reader {
    const unsigned char *data;
    size_t len;
    size_t at;
};

/* Reads one item: the head of an array, map or tag, else all of it. Text is
 * checked to be UTF-8; an array or map has no more items than bytes follow.
 * errors: EPROTOCOL, with the byte where the item begins */
tenrec_status item_next(struct item_reader *r, struct item *ret, tenrec_error *err);

/* What an item is, for error texts. */
const char *item_kind_name(enum item_kind kind);

#endif
