/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - what happened to each call, kept so that it outlives the process:
 * a record is in the file once ledger_note returns, also if SIGKILL comes next.
 * soak.py reads the ledgers of all workers and compares them. */
#ifndef SOAK_LEDGER_H
#define SOAK_LEDGER_H

#include <stdint.h>

enum ledger_what {
    LEDGER_START = 1, /* a call is about to be made; `status` is its kind, `ms` its limit */
    LEDGER_END = 2,   /* it ended, with `status` */
    LEDGER_EXEC = 3,  /* its function runs here */
    LEDGER_BAD = 4,   /* its answer is not what it should be; `status`: enum ledger_bad, or another
                         number */
    LEDGER_MISSING = 5, /* bytes that it writes are not all there when the region has ended */
};

/* What is wrong with the bytes of regions and weights; ledger.py has the texts. */
enum ledger_bad {
    BAD_FOREIGN = 10, /* bytes that no writer has for that place */
    BAD_CHANGED,      /* a byte has changed after a revoke that returned OK */
    BAD_THEN,         /* `then` has run before the bytes were there */
    BAD_NAMES,        /* a revoke that timed out names no worker */
    BAD_STUCK,        /* a region is not quiet long after its revoke */
    BAD_READ,         /* other bytes were read */
    BAD_FREE,         /* a buffer does not become free */
    BAD_LATE,         /* a buffer has changed after it was free */
    BAD_MIXED,        /* weights that are not of one version and one publisher */
    BAD_WITHDRAW,     /* a published version cannot be withdrawn */
};

/* 32 bytes, the machine's byte order. */
struct ledger_record {
    uint64_t id;
    uint64_t at_us; /* CLOCK_MONOTONIC */
    int32_t status;
    uint32_t what; /* enum ledger_what */
    uint32_t ms;
    uint32_t reserved;
};

/* Ends the process when the file cannot be written. */
void ledger_open(const char *path);
void ledger_note(enum ledger_what what, uint64_t id, int32_t status, uint32_t ms);

/* An id that no other call of the soak has. */
void ledger_name(unsigned slot, unsigned life);
uint64_t ledger_next(void);

#endif
