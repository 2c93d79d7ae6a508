#!/bin/bash
# Draws an ensemble and scores images with it, in parts on Slurm, each step when the one before is done:
#
#     POSTERIOR=posterior.safetensors BN_DATA=train IMAGES=images submit.sh
#
# Run again, it computes only the parts that are missing. Options of sbatch are taken from SBATCH_PARTITION and so on.
set -eu
posterior=${POSTERIOR:-posterior.safetensors} statistics=${BN_DATA:-train} images=${IMAGES:-images}
members=${MEMBERS:-30} draws=${DRAWS:-10} parts=${PARTS:-50}
ensemble=${ENSEMBLE:-ensemble.safetensors} store=${STORE:-kept} output=${OUTPUT:-predictions.parquet}
part=$(dirname "$(realpath "$0")")/part.sbatch

# A job that waits for another which failed is cancelled: it would wait for ever.
after() { sbatch --parsable --dependency="afterok:$1" --kill-on-invalid-dep=yes "${@:2}"; }
merge() { after "$1" --job-name=merge --output=%x-%j.log --wrap "exec swagwrap merge --force -o '$2'"; }

job=$(sbatch --parsable --job-name=sample --array="0-$((draws - 1))" "$part" "$draws" \
	swagwrap sample --store "$store" -n "$members" --bn-data "$statistics" -o "$ensemble" "$posterior")
job=$(after "$job" --job-name=ensemble --output=%x-%j.log --wrap \
	"exec swagwrap sample --force --store '$store' -n '$members' --bn-data '$statistics' -o '$ensemble' '$posterior'")
job=$(after "$job" --job-name=score --array="0-$((parts - 1))" "$part" "$parts" \
	swagwrap score --on-error skip -o "$output" "$ensemble" "$images")
merge "$job" "$output"
