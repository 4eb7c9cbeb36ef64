/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - USDT probes of the provider "tenrec" (docs/profiling.md). Without sys/sdt.h they are
 * nothing. An untraced probe is one nop: its arguments must be values at hand. */
#ifndef TENREC_BASE_PROBE_H
#define TENREC_BASE_PROBE_H

#ifdef TENREC_HAVE_SDT
#include <sys/sdt.h>
#define PROBE2(name, a, b) DTRACE_PROBE2(tenrec, name, a, b)
#define PROBE3(name, a, b, c) DTRACE_PROBE3(tenrec, name, a, b, c)
#define PROBE4(name, a, b, c, d) DTRACE_PROBE4(tenrec, name, a, b, c, d)
#define PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(tenrec, name, a, b, c, d, e)
#else
#define PROBE2(name, a, b) ((void)(a), (void)(b))
#define PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define PROBE5(name, a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

#endif
