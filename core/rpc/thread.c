/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/thread.h"

_Thread_local struct thread_state thread_state;
