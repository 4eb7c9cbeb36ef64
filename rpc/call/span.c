/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/span.h"

_Atomic uint32_t span_recorders;
