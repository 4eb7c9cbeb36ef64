/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fd = -1;
static _Atomic uint64_t next;

void ledger_open(const char *path)
{
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0)
        return;
    fprintf(stderr, "actor: cannot write '%s': %s\n", path, strerror(errno));
    exit(3);
}

void ledger_note(enum ledger_what what, uint64_t id, int32_t status, uint32_t ms)
{
    struct timespec t;
    struct ledger_record r = { .id = id, .status = status, .what = (uint32_t)what, .ms = ms };

    clock_gettime(CLOCK_MONOTONIC, &t);
    r.at_us = (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
    if (write(fd, &r, sizeof r) != (ssize_t)sizeof r) {
        fprintf(stderr, "actor: cannot write its ledger: %s\n", strerror(errno));
        _exit(3);
    }
}

/* 8 bits of slot, 16 of life, 40 to count. */
void ledger_name(unsigned slot, unsigned life)
{
    atomic_store(&next, (uint64_t)(slot & 0x7f) << 56 | (uint64_t)(life & 0xffff) << 40);
}

uint64_t ledger_next(void)
{
    return atomic_fetch_add(&next, 1) + 1;
}
