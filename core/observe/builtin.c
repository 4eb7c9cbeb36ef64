/* builtin.c - the functions that every worker has. */
#include "rpc/builtin.h"

#include "observe/debug_info.h"

/* Inline, so that they answer also when the pool is full of blocked functions. */
const struct builtin builtin_functions[] = {
    { "tenrec.debug_info", debug_info_answer, TENREC_INLINE },
    { NULL, NULL, 0 },
};
