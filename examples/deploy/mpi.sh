#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpi.sh HOSTFILE N PROGRAM [ARG ...] - N workers on the hosts of a hostfile of Open MPI, which only starts them: the
# program needs no MPI. The first line names the host of rank 0, which serves the store.
#
#   TENREC_SECRET_FILE   the group secret, by `tenrec secret new`, at the same path on each host
#   MASTER_PORT          a free port of the first host; 29500 without it
set -eu
[ $# -ge 3 ] || {
    echo "usage: TENREC_SECRET_FILE=FILE $0 HOSTFILE N PROGRAM [ARG ...]" >&2
    exit 2
}
hosts=$1 n=$2
shift 2
: "${TENREC_SECRET_FILE:?name the file of the group secret; 'tenrec secret new FILE' makes one}"
export TENREC_SECRET_FILE MASTER_PORT="${MASTER_PORT:-29500}"
MASTER_ADDR=$(awk '!/^[[:space:]]*(#|$)/ { print $1; exit }' "$hosts")
export MASTER_ADDR
exec mpirun --hostfile "$hosts" --map-by node -n "$n" -x TENREC_SECRET_FILE -x MASTER_ADDR -x MASTER_PORT "$@"
