/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - Tenrec, measured as its peers are, and its start and rest.
 *
 *     tenrec_bench MODE PROGRESS uv|shm|uv_pool|shm_pool|secret|tls|ucx|WRAPPERS [BYTES,...]
 *     tenrec_bench get|put|get_mapped|get_blocks|put_blocks PROGRESS uv|shm|ucx [BYTES,...]
 *     tenrec_bench register PROGRESS shm [BYTES,...]
 *     tenrec_bench init|idle|after|connect uv|shm|secret|tls
 *
 *     tenrec_bench beside uv|shm|secret|tls out|in|both
 *
 * MODE is latency, rate, bandwidth or drop as in driver.h; keep is drop with all
 * results kept; source is bandwidth out of mappable memory, handover passes such
 * memory on. With _pool the functions of small calls run on the callee's pool.
 * ucx is the backend ucx over TCP.
 * WRAPPERS is layers, trace, meter or limit: shm with ten wrappers that do nothing, or with that;
 * traces, durations and recorder are shm with such an observer of calls.
 *
 * get, put read and write a region of the callee; get_mapped reads one in mappable memory; with
 * _blocks as a batch of blocks of 16 KiB. register makes a region and drops it.
 *
 * init    8 workers over a file store, first call in to last return
 * beside  small calls alone, and while 256 MiB tensors go to the same peer or come from it
 * connect the first call between 2 workers, which makes their connections
 * idle    one of 2 workers at rest: CPU, threads, memory
 * after   CPU of 2 workers from a moment after the last of many calls on */
#include "modes.h"

#include <string.h>

int main(int argc, char **argv)
{
    const struct way ways[] = { calls_uv,      calls_shm,      calls_pool_uv,   calls_pool_shm,
                                calls_keep_uv, calls_keep_shm, calls_secret,    calls_ucx,
                                calls_tls,     calls_layers,   calls_trace,     calls_meter,
                                calls_limit,   calls_traces,   calls_durations, calls_recorder,
                                regions_uv,    regions_shm,    regions_ucx,     regions_register };
    const char *mode = argc > 1 ? argv[1] : "";
    bool known = argc >= 3 && (!strcmp(argv[2], "uv") || !strcmp(argv[2], "shm") ||
                               !strcmp(argv[2], "secret") || !strcmp(argv[2], "tls"));

    if (argc == 6 && !strcmp(mode, "rest"))
        return rest_exec(argv + 2);
    if (argc == 4 && known && !strcmp(mode, "beside"))
        return beside_main(argv[2], argv[3]);
    known = known && argc == 3;
    if (known && !strcmp(mode, "init"))
        return start_main(argv[2]);
    if (known && !strcmp(mode, "connect"))
        return connect_main(argv[2]);
    if (known && !strcmp(mode, "idle"))
        return rest_main(argv[2], false);
    if (known && !strcmp(mode, "after"))
        return rest_main(argv[2], true);
    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
