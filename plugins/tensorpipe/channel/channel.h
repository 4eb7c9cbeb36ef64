/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h - how the bytes of tensors travel within a pipe.
 *
 * A channel is a name that both peers put into their Brochures. It may have
 * connections of its own, says what is written for each tensor and takes what
 * arrives. Messages whose tensors are empty do not ask it. */
#ifndef TENSORPIPE_CHANNEL_H
#define TENSORPIPE_CHANNEL_H

#include "transport/conn.h"
#include "wire/descriptor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* cma.c: reading tensors out of another process's memory.
 *
 * The kernel allows that between processes of one user in one user namespace
 * when its rules for ptrace do. Memory is only ever read: a process id can be
 * reused once its process is gone; a read then yields garbage that is dropped with
 * the pipe, while a write would corrupt another process. */

#define CMA_TEXT_MAX 192

/* Whether peers may read our memory and, being alike, we theirs; else why not.
 * Asks the kernel once per process: a child tries it on us. */
bool cma_viable(char why[], size_t cap);

/* The text of TensorPipe's channel "cma" by which peers compare boot, namespaces, user, group and
 * capabilities. Returns false if the machine does not provide them. */
bool cma_domain(char buf[CMA_TEXT_MAX]);

/* Returns true if the kernel demands the name of the process that may read our memory. It remembers
 * one process then. */
bool cma_wants_names(void);

/* Lets process `pid` read our memory, where the kernel demands that. Returns false if another
 * process is named already. cma_disallow undoes a call that returned true. */
bool cma_allow(pid_t pid);
void cma_disallow(pid_t pid);

/* A process to read from. */
struct cma_peer {
    pid_t pid;    /* 0: unknown */
    int fd;       /* readable once the process is gone; -1: none */
    bool is_sock; /* fd is that of a Unix socket to it, and borrowed */
};

/* Returns 0 or an errno. */
int cma_open(struct cma_peer *peer, pid_t pid);
/* The process at the other end of a Unix socket, whose pid is the kernel's. The socket ends before
 * that pid can be another process's. */
struct cma_peer cma_beside(pid_t pid, int sock);
void cma_close(struct cma_peer *peer);
/* Reads `len` bytes at `from` there. 0 or an errno; ESRCH when the process is
 * gone, and so also when it was another one of the same id that was read. */
int cma_read(const struct cma_peer *peer, void *to, uint64_t from, uint64_t len);
/* The same for `n` places with one system call; to[i] and from[i] have the same length. */
int cma_read_list(const struct cma_peer *peer, const struct iovec *to, const struct iovec *from,
                  size_t n);

/* Progress of a part of a message. */
enum part { PART_THERE, PART_MISSING, PART_BAD };

struct arrival;
struct incoming;
struct intake;
struct pipe;

struct channel {
    const char *name; /* on the wire */

    /* Connections of its own. The first `data` of them are read by the reader of the pipe, if they
     * carry the next byte of a tensor (intake.want); what arrives on the others is for the sender
     * of tensors, and the loop thread reads it. */
    unsigned connections, data;
    /* They, and the reply connection, may open with the first tensor that needs them: tensors can
     * also travel behind their message on the descriptor connection. */
    bool deferrable;
    /* The kind of the note of a tensor that the peer maps (shm_handoff.h); those the
     * channel is not asked to send. 0: it maps none. */
    unsigned char maps;

    /* Sending, under the pipe's lock. At most `segments` of them are needed for
     * tensor `t`; send fills them in (they are zero), counts its parts in `request` and
     * returns how many it took. `together`: bytes of the message's tensors. `note` travels with the
     * descriptor; an empty one is what libtensorpipe sends. */
    unsigned (*segments)(const struct pipe *p, const struct tenrec_tensor_desc *t,
                         uint64_t together);
    unsigned (*send)(struct pipe *p, struct send_request *request,
                     const struct tenrec_tensor_desc *t, uint64_t together, struct segment *s,
                     struct descriptor_note *note);

    /* Handles the note of a descriptor; NULL: notes are ignored. `desc` is the tensor's, with its
     * length; NULL: the message is not wanted. errors: EPROTOCOL; others: the tensor is rejected;
     * the pipe stays usable */
    tenrec_status (*announced)(struct pipe *p, struct nop_bytes note, struct incoming *in,
                               struct tenrec_tensor_desc *desc, tenrec_error *err);

    /* Receiving, by the reader of the pipe: takes the available bytes of the tensor that is read
     * next, and sets the source of the next byte (want, lead). */
    enum part (*receive)(struct pipe *p, struct intake *t);

    /* Something arrived on a connection after the first `data`; on the loop
     * thread. NULL: there is none. */
    void (*arrived)(struct pipe *p, struct conn *c);

    /* All connections are open, and no message was sent on them: may fail the pipe. On the loop
     * thread. NULL: nothing to do. */
    void (*complete)(struct pipe *p);

    /* The pipe is established; on the loop thread. NULL: nothing to do. */
    void (*established)(struct pipe *p);
};

extern const struct channel channel_basic, channel_cma, channel_host;
/* Its connections are as many as the options say. */
extern const struct channel channel_lanes;

/* The tensor that is read next, and its memory; NULL: it is skipped. */
struct incoming *channel_incoming(const struct intake *t);
void *channel_target(const struct intake *t);
/* The memory of tensor `i` of the message; NULL: it is skipped. */
void *channel_target_at(const struct arrival *a, uint32_t i);

/* Takes a frame of `len` bytes for `to` (NULL: nowhere) from connection `from`,
 * over several calls; head_got and got are 0 before the first. */
enum part channel_take_frame(struct pipe *p, struct intake *t, enum conn_role from, void *to,
                             uint64_t len);

/* Reads the tensor at `from` in that process's memory, a piece at a time: PART_MISSING, there is
 * more. PART_BAD: why not is *ret_errno. */
enum part channel_pull(struct pipe *p, struct intake *t, const struct cma_peer *peer, uint64_t from,
                       int *ret_errno);

/* Reads it and those behind it in the message that have the path `how`, too, with one system call,
 * and gives them the path `done`. Returns how many; 0: read it alone. */
size_t channel_pull_neighbours(struct pipe *p, struct intake *t, const struct cma_peer *peer,
                               int how, int done);

/* The next frame, of at most `max` bytes, on a connection that the loop thread reads; advancing
 * conn->pos takes it. Returns false if none has arrived, or the pipe is broken. */
bool channel_next_frame(struct pipe *p, struct conn *c, size_t max, const unsigned char **ret_body,
                        size_t *ret_len);

/* For channel.segments: each tensor takes one. */
unsigned channel_one_segment(const struct pipe *p, const struct tenrec_tensor_desc *t,
                             uint64_t together);

/* Fills `s` with a frame of `len` bytes at `data`, to be written on `on`. */
void channel_put_frame(struct segment *s, struct send_request *request, enum conn_role on,
                       void *data, uint64_t len);

/* shm_handoff.c: tensors that the peer maps instead of taking their bytes.
 *
 * The core supplies the record that replaces a tensor, and the descriptors that the peer needs for
 * it. The record is the note beside the tensor; the descriptors go over the Unix socket of the
 * reply connection, before the message, with a number that the note names: what was sent for a
 * message that never went out is skipped. */

/* The pipe is established, and nothing was sent on it; on the loop thread. */
void shm_handoff_open(struct pipe *p);
void shm_handoff_close(struct pipe *p); /* no thread uses it any more */
/* Returns true if the peer maps shared tensors. Any thread. */
bool shm_handoff_maps(struct pipe *p);

/* Under the pipe's lock. Returns false, having done nothing, if the bytes must be sent. `kind` is
 * the first byte of the note. */
bool shm_handoff_send(struct pipe *p, const struct tenrec_tensor_desc *t, unsigned char kind,
                      struct descriptor_note *note);
/* The message of these notes is not sent after all: takes back what shm_handoff_send
 * did for it. */
void shm_handoff_take_back(struct pipe *p, unsigned char kind, const struct descriptor_note *notes,
                           uint32_t n);

/* Handles a received note of shm_handoff_send, for `desc` (NULL: drop the message). For the
 * thread that reads the pipe. errors: EPROTOCOL (end the pipe); others (drop the message) */
tenrec_status shm_handoff_arrived(struct pipe *p, struct nop_bytes note,
                                  struct tenrec_tensor_desc *desc, tenrec_error *err);

#endif
