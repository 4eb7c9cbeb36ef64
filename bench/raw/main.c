/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the limits of this machine, without any library.
 *
 *     raw latency|rate busy|sleep tcp|unix
 *     raw latency sleep eventfd|futex
 *     raw latency|rate busy spin           shared memory that both poll
 *     raw bandwidth busy|sleep tcp|unix    into a reused buffer
 *     raw latency|bandwidth sleep tls      OpenSSL with full records
 *     raw bandwidth busy copy|ring|readv   shared memory: one copy, a pipelined
 *                                          ring, process_vm_readv
 *     raw bandwidth busy memcpy            one process alone
 *     raw drop|keep busy pages|huge        one process copies into new pages
 *     raw handover sleep memfd             memory is passed and mapped */
#include "raw.h"

int main(int argc, char **argv)
{
    const struct way ways[] = { raw_tcp,   raw_unix, raw_tls,        raw_eventfd,   raw_futex,
                                raw_spin,  raw_copy, raw_ring,       raw_readv,     raw_memcpy,
                                raw_pages, raw_huge, raw_keep_pages, raw_keep_huge, raw_memfd };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
