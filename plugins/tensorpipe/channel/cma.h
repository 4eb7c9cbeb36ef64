/* SPDX-License-Identifier: Apache-2.0 */
/* cma.h - reading tensors out of another process's memory.
 *
 * The kernel allows that between processes of one user in one user namespace
 * when its rules for ptrace do. Memory is only ever read: a process id can be
 * reused once its process is gone; a read then yields garbage that is dropped with
 * the pipe, while a write would corrupt another process. */
#ifndef TENSORPIPE_CMA_H
#define TENSORPIPE_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
