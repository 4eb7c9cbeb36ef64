/* SPDX-License-Identifier: Apache-2.0 */
#include <tenrec/rpc.h>
#include <tenrec/version.h>

#define VERSION_TEXT_OF(x) #x
#define VERSION_TEXT(x) VERSION_TEXT_OF(x)

const char *tenrec_version_text(void)
{
    return VERSION_TEXT(TENREC_VERSION_MAJOR) "." VERSION_TEXT(
        TENREC_VERSION_MINOR) "." VERSION_TEXT(TENREC_VERSION_PATCH);
}

uint32_t tenrec_version_number(void)
{
    return TENREC_VERSION;
}
