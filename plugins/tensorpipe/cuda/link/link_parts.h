/* SPDX-License-Identifier: Apache-2.0 */
/* link_parts.h - what the files of a link share. */
#ifndef TENSORPIPE_CUDA_LINK_PARTS_H
#define TENSORPIPE_CUDA_LINK_PARTS_H

#include "cuda/device.h"
#include "cuda/import.h"
#include "cuda/link/link.h"
#include "pipe/pipe.h"

/* ---- the wire: docs/wire.md ---- */

enum method {
    METHOD_XTH = 1,
    METHOD_IPC = 2,
    METHOD_BASIC = 3
}; /* first byte of a note, plus NOTE_KIND */
#define METHOD_BIT(way) (1u << (way))
#define NOTE_KIND 16 /* above those of host memory */
#define NOTE_SHORT (1 + 8)
#define NOTE_IPC (1 + 4 * 8 + 64 + 64)

enum said { SAID_HELLO = 1, SAID_PIECE = 2, SAID_TAKEN = 3, SAID_REFUSED = 4, SAID_FAILED = 5 };
#define PIECE_HEAD (1 + 8 + 8) /* of a frame with bytes of a tensor */
#define SAID_MAX 512           /* of any other */
#define LINK_VERSION 1
#define PROCESS_TOKEN IMPORT_OWNER
#define BOOT_ID 48

struct link {
    struct pipe *pipe; /* a reference while it is starved */
    struct link *next_starved;
    bool is_starved;
    bool greeted; /* the peer's HELLO has arrived */
    unsigned methods;
    unsigned char token[PROCESS_TOKEN];
    bool same_process, same_host;
    unsigned n_uuids;
    unsigned char uuid[DEVICES_MAX][16];
    bool refused[DEVICES_MAX]; /* the peer could not map memory of a device of ours */
    uint64_t numbers;          /* of tensors sent */
    struct lent **lending;     /* for each tensor of the message that is being encoded */
    uint32_t n_lending;
    struct arriving *arriving, **last_arriving;
    struct { /* the piece that is being read */
        bool on;
        uint64_t len, got;
        struct arriving *message;
        uint32_t tensor;
        struct staging_piece *piece;
        unsigned char *to; /* NULL: nowhere */
    } in;
};

/* A loan of an own tensor to a peer. */
struct lent {
    struct lent *next, **prev;    /* of cuda.lent */
    struct pipe *pipe;            /* owns a reference */
    struct send_request *request; /* whose part it is */
    enum method method;
    uint64_t number;
    struct tenrec_stream stream; /* CPU: memory of the host */
    unsigned char *data;
    uint64_t bytes, issued;
    unsigned busy;             /* pieces on their way */
    bool stopped;              /* no more pieces */
    bool waits;                /* for a piece of pinned memory */
    struct handover *handover; /* xth */
    struct device_event *event;
    uint64_t orphan_ns; /* ipc, when its pipe broke: keep it until then */
    unsigned char note[NOTE_IPC];
    uint8_t note_len;
};

struct landing {
    bool is_ours; /* is the link's */
    bool is_there;
    enum method method;
    struct tenrec_device source, target;
    uint64_t number, len, got;
    uint64_t offset; /* ipc */
    struct import_key key;
    struct driver_ipc_event event;
};

/* A message of which tensors are missing. */
struct arriving {
    struct arriving *next;
    struct pipe *pipe;
    struct tenrec_msg *msg; /* NULL: not wanted */
    int32_t type;
    int64_t id;
    bool skipped;
    tenrec_error why;
    uint32_t n, left;
    struct landing landing[];
};

/* link.c */
bool link_say(struct pipe *p, const unsigned char *body, size_t len);
bool link_say_number(struct pipe *p, enum said what, uint64_t number);

/* link_send.c */
void link_greeted(struct pipe *p); /* what waited for that goes on */
bool lent_taken(struct pipe *p, uint64_t number);
bool lent_refused(struct pipe *p, uint64_t number);
void lent_of_broken(struct pipe *p);
void lent_look(struct inflight_list *fs);
bool lent_is_done(const struct lent *l);
/* The device does not read it any more. */
void lent_end(struct lent *l);
/* The peer hears why there are no more pieces. */
void lent_failed(struct lent *l, const tenrec_error *why);

/* link_method.c: fills way, number and note. errors: EUNSUPPORTED, those of the driver */
tenrec_status lent_choose(struct lent *l, const struct tenrec_tensor_desc *t, tenrec_error *err);
void lent_in_pieces(struct lent *l);

/* link_pieces_out.c */
bool lent_pump(struct lent *l); /* Returns false once it has ended. */
void pieces_written(struct cuda *c);

/* link_receive.c */
void link_receive_handed(struct pipe *p);
bool link_failed(struct pipe *p, uint64_t number, const char *text, size_t len);
void link_receive_broken(struct pipe *p);
/* NULL when the message is not wanted. */
struct tenrec_tensor_desc *landing_tensor(const struct arriving *m, const struct landing *at);
/* Its bytes are discarded from now on. Copies that are queued end before its memory is used again:
 * both are in the order of one stream. */
void link_skip(struct arriving *m, const tenrec_error *why);
/* Completes one tensor; the last one completes the message. */
void link_landed(struct landing *at, struct arriving *m);
void link_finish(struct pipe *p, struct arriving *m);

/* link_copy.c: queued, on the tensor's stream. `t` is NULL for what is not wanted.
 * errors   EPROTOCOL, those of the driver; EAGAIN: it cannot be mapped here, and the
 *          sender is to be asked for pieces */
tenrec_status link_copy_lent(struct pipe *p, const struct landing *at,
                             const struct tenrec_tensor_desc *t, tenrec_error *err);
tenrec_status link_copy_mapped(struct pipe *p, struct landing *at,
                               const struct tenrec_tensor_desc *t, tenrec_error *err);
/* The message was delivered in the order of its stream: only the pipe remains to be notified. */
void link_copy_failed(struct pipe *p, const tenrec_error *why);

/* link_pieces_in.c */
bool link_piece_begin(struct pipe *p, uint64_t number, uint64_t offset, uint64_t len);
void link_piece_end(struct pipe *p);
void link_pieces_broken(struct pipe *p);
/* The tensor of that number that arrives in pieces and is incomplete; NULL: its message is not
 * known yet. Its message is *ret, unless ret is NULL. */
struct landing *link_find(const struct link *l, uint64_t number, struct arriving **ret);
/* Links that wait for pinned memory go on. */
void link_feed(struct cuda *c);
/* Reads all available bytes of the connection. */
void link_read(struct pipe *p);

#endif
