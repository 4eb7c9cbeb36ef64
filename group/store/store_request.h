/* SPDX-License-Identifier: Apache-2.0 */
/* store_request.h - requests of c10d's TCPStore: numbers and layout.
 *
 * The numbers changed over time and nothing on the wire names the table in use. The first bytes of
 * a connection distinguish them: clients that know VALIDATE must begin with it. */
#ifndef TENREC_STORE_STORE_REQUEST_H
#define TENREC_STORE_STORE_REQUEST_H

#include "group/store/bytes.h"
#include "group/store/store_table.h"

enum store_op {
    STORE_OP_NONE,
    STORE_OP_VALIDATE,
    STORE_OP_SET,
    STORE_OP_COMPARE_SET,
    STORE_OP_GET,
    STORE_OP_ADD,
    STORE_OP_CHECK,
    STORE_OP_WAIT,
    STORE_OP_NUM_KEYS,
    STORE_OP_WATCH_KEY,
    STORE_OP_DELETE_KEY,
    STORE_OP_APPEND,
    STORE_OP_MULTI_GET,
    STORE_OP_MULTI_SET,
    STORE_OP_CANCEL_WAIT,
    STORE_OP_PING,
    STORE_OP_QUEUE_PUSH,
    STORE_OP_QUEUE_POP,
    STORE_OP_QUEUE_LEN,
    STORE_OP_LIST_KEYS,
    STORE_OP_BARRIER,
    STORE_OP_COUNT,
};

#define STORE_TLS_FIRST 0x16 /* the first byte of TLS on a connection */

enum store_dialect {
    STORE_DIALECT_UNKNOWN,
    STORE_DIALECT_1_13, /* also accepts the requests that 2.0 appended */
    STORE_DIALECT_2_2,
};

#define STORE_MAGIC 0x3C85F7CEu

/* Bounds of one request; beyond them the connection is closed. Values may be longer than
 * those of our clients: torch 1.13 has no limit, torch 2.4's server accepts 8 MiB. */
#define STORE_MAX_LIST 131072u                /* keys of a request */
#define STORE_MAX_REQUEST ((size_t)160 << 20) /* bytes */

/* The number of `op` on the wire, -1 when the dialect has none. */
int store_op_number(enum store_dialect d, enum store_op op);

struct store_request {
    enum store_op op;
    struct bytes_slice key;
    struct bytes_slice value[2]; /* SET: value; COMPARE_SET: expected, desired */
    int64_t number;              /* ADD, BARRIER; VALIDATE and PING: the u32 */
    size_t n;                    /* keys or pairs of a list */
    struct bytes_slice list;     /* their blobs, one after the other */
    size_t len;                  /* bytes of the whole request */
};

enum store_parse {
    STORE_PARSE_WHOLE,
    STORE_PARSE_PART, /* ret->len: bytes needed at least */
    STORE_PARSE_BAD,  /* *ret_why: the reason */
};

/* The progress of a request: parsing continues there with more bytes. Zeroed for each request. */
struct store_parser {
    size_t at;       /* bytes parsed */
    size_t argument; /* of the layout */
    size_t n_values;
    uint64_t unit, n_units; /* blobs of a list; n_units is 0 outside of a list */
    bool in_list;
    struct store_request request; /* its spans begin at offsets, not at bytes */
    size_t key_at, value_at[2], list_at;
};

/* Continues with the request at the start of `data`: all of its bytes received so far. */
enum store_parse store_request_parse(struct store_parser *p, enum store_dialect d,
                                     const uint8_t *data, size_t len, struct store_request *ret,
                                     const char **ret_why);

/* Removes the next blob from a parsed list. */
struct bytes_slice store_request_next(struct bytes_slice *list);

/* The dialect of a connection by its first bytes; UNKNOWN while there are too few.
 * A 1.13 SET (0) with a key length like the magic would exceed the length of a key,
 * so the two cannot be confused. */
enum store_dialect store_dialect_of(const uint8_t *data, size_t len);

#endif
