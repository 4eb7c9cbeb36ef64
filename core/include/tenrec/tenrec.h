/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/tenrec.h - all that a program needs. */
#ifndef TENREC_TENREC_H
#define TENREC_TENREC_H

#include <tenrec/backend.h>
#include <tenrec/group.h>
#include <tenrec/log.h>
#include <tenrec/observe.h>
#include <tenrec/profiler.h>
#include <tenrec/rpc.h>
#include <tenrec/rref.h>
#include <tenrec/version.h>

#endif
