# SPDX-License-Identifier: Apache-2.0
# security.sh - the security modes of script/test and script/ci/test-torch, which read this file.
# shellcheck shell=bash
#
# A mode is a set of variables, which each worker and each client of a store obeys. A new mode
# is a word here, and its variables below.
security_modes=(none secret tls mtls)

# security_certify FOLDER: makes ca.pem there, and cert.pem and key.pem for all workers, whose names it does not know.
security_certify() (
    cd "$1"
    curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
    openssl req -x509 "${curve[@]}" -subj /CN=tests -days 2 -keyout ca.key -out ca.pem
    openssl req "${curve[@]}" -subj /CN=workers -keyout key.pem -out cert.csr
    openssl x509 -req -in cert.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
        -extfile <(echo subjectAltName=DNS:workers.tests) -out cert.pem
)

# security_use MODE BUILD: all that starts from now on is in this mode, unless a test has a mode of
# its own. Its files are new ones in BUILD/security. Fails when a worker would not be in it.
security_use() {
    local folder=$2/security file in_force
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
    mtls)
        security_certify "$folder" 2>"$folder/openssl.log" || {
            cat "$folder/openssl.log" >&2
            return 1
        }
        export TENREC_SECURITY__MODE=mtls TENREC_SECURITY__MTLS__NAMES=workers.tests
        for file in ca cert key; do export "TENREC_SECURITY__MTLS__${file^^}=$folder/$file.pem"; done
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
