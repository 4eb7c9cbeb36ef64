# SPDX-License-Identifier: Apache-2.0
# lib.sh - what the tests share: a folder to work in, which is `here`, and the sources, `source`.
# Read from the top of the source package.
set -eu
source=$PWD
here=${AUTOPKGTEST_TMP:-$(mktemp -d)}
[ -n "${AUTOPKGTEST_TMP-}" ] || trap 'rm -r "$here"' EXIT
cd "$here"

# says WANTED COMMAND...: the command succeeds within two minutes, and prints that many lines "worker0 says 42".
says() {
    wanted=$1
    shift
    echo "+ $*"
    timeout 120 "$@" >said 2>&1 || {
        cat said
        echo "the command ends with an error" >&2
        return 1
    }
    cat said
    said=$(grep -c '\bworker0 says 42$' said) || true
    [ "$said" = "$wanted" ] || {
        echo "'worker0 says 42' stands there $said times, expected $wanted" >&2
        return 1
    }
}

# has NAME: tenrec info lists the plugin, from the folder of the packages.
has() {
    tenrec info >info
    grep -q "\b$1\b" info || {
        cat info
        echo "tenrec info does not list '$1'" >&2
        return 1
    }
}
