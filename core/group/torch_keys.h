/* torch_keys.h - where workers of torch.distributed.rpc look for a group. */
#ifndef TENREC_GROUP_TORCH_KEYS_H
#define TENREC_GROUP_TORCH_KEYS_H

#include <tenrec/store.h>

#define TORCH_KIND "rpcIsStaticGroup"         /* roster_kind.c */
#define TORCH_TOKEN "RpcGroupManagementToken" /* group_lock.c */

/* The part of `whole` with torch's keys for that group: where the first init_rpc of a
 * process looks, for the group "default" of no run; else a prefix leads there. ret: owns. */
tenrec_status torch_keys_open(struct tenrec_store *whole, const char *group, const char *run,
                              struct tenrec_store **ret, tenrec_error *err);

#endif
