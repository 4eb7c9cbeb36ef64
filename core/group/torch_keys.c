#include "group/torch_keys.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "rpc_prefix_0"

tenrec_status torch_keys_open(struct tenrec_store *whole, const char *group, const char *run,
                              struct tenrec_store **ret, tenrec_error *err)
{
    char text[400];

    if (strcmp(group, "default") == 0 && !*run)
        return tenrec_store_prefix(whole, PREFIX, ret, err);
    snprintf(text, sizeof text, "tenrec/%s%s%s/" PREFIX, group, *run ? "/" : "", run);
    return tenrec_store_prefix(whole, text, ret, err);
}
