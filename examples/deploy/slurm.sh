#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbatch slurm.sh PROGRAM [ARG ...] - one worker for each task; ranks, size and store follow from Slurm's variables.
#SBATCH --job-name=tenrec
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH --time=00:10:00
set -eu

# A secret for this job alone, on each node at a place of the node's own, gone with the job.
umask 077
key=${TMPDIR:-/tmp}/tenrec-$SLURM_JOB_ID.key
made=$key.made
tenrec secret new "$made"
trap 'srun --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" rm -f "$key" || true; rm -f "$made"' EXIT
sbcast --preserve "$made" "$key"

srun --kill-on-bad-exit=1 --export="ALL,TENREC_SECRET_FILE=$key" "$@"
