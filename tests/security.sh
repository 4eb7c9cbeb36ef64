# SPDX-License-Identifier: Apache-2.0
# security.sh - the security modes of script/test and script/test-torch, which read this file.
# shellcheck shell=bash
#
# A mode is a set of variables, which each worker and each client of a store obeys. A new mode
# is a word here, and its variables below.
security_modes=(none secret tls)

# security_use MODE BUILD: all that starts from now on is in this mode, unless a test has a mode of
# its own. Its files are new ones in BUILD/security. Fails when a worker would not be in it.
security_use() {
    local folder=$2/security in_force
    rm -rf "$folder"
    mkdir -p "$folder"
    export TENREC_TEST_SECURITY=$1
    case $1 in
    none) export TENREC_SECURITY__MODE=none ;; # of 'tenrec run' too, which draws a secret otherwise
    secret | tls)
        "$2/tools/tenrec" secret new "$folder/job.key"
        export TENREC_SECRET_FILE=$folder/job.key
        [ "$1" = secret ] || export TENREC_SECURITY__MODE=$1
        ;;
    esac
    in_force=$(TENREC_PLUGIN_PATH=$2/plugins "$2/tools/tenrec" check config/default.yaml)
    if [[ $in_force != *"; security: $1 ("* ]]; then
        echo "the security mode is not '$1': $in_force" >&2
        return 1
    fi
}

# security_check WORD: returns true if this is a mode.
security_check() {
    local mode
    for mode in "${security_modes[@]}"; do
        if [ "$mode" = "$1" ]; then return; fi
    done
    return 1
}
