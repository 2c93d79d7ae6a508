#!/bin/bash
# Draws an ensemble and scores images with it, in parts on Kubernetes, each step when the one before is done:
#
#     IMAGE=registry/swagwrap CLAIM=photographs IMAGES=images PARTS=50 submit.sh
#
# Files are those of the claim. Run again, it computes only the parts that are missing. "submit.sh jobset" leaves the order of the
# steps to JobSet, where the cluster has that, and does not wait.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
image=${IMAGE:-swagwrap} claim=${CLAIM:-swagwrap}
posterior=${POSTERIOR:-posterior.safetensors} statistics=${BN_DATA:-train} images=${IMAGES:-images}
members=${MEMBERS:-30} draws=${DRAWS:-10} parts=${PARTS:-50} together=${TOGETHER:-10}
ensemble=${ENSEMBLE:-ensemble.safetensors} output=${OUTPUT:-predictions.parquet}

most=$((parts < 5 ? parts : 5)) # failed parts; Kubernetes wants no more than there are parts

# template FILE prints it with what was asked for.
template() {
	sed -E -e "s#(completions: |auto/)10#\1DRAWS#" -e "s#(completions: |auto/)50#\1PARTS#" -e "s#DRAWS#$draws#" -e "s#PARTS#$parts#" \
		-e "s#maxFailedIndexes: 5#maxFailedIndexes: $most#" \
		-e "s#parallelism: 10#parallelism: $together#" -e "s#image: swagwrap#image: $image#" -e "s#claimName: swagwrap#claimName: $claim#" \
		-e "s#\"30\"#\"$members\"#" -e "s#--bn-data, train,#--bn-data, $statistics,#" -e "s#, images]#, $images]#" \
		-e "s#predictions\.parquet#$output#" -e "s#posterior\.safetensors#$posterior#" -e "s#ensemble\.safetensors#$ensemble#" "$here/$1.yaml"
}

# run STEP runs the job of a template and waits for its end.
run() {
	local job=job/swagwrap-$1 state=
	kubectl delete --ignore-not-found "$job"
	template "$1" | kubectl create -f -
	until [[ " $state " =~ \ (Complete|Failed)\  ]]; do
		sleep 5
		state=$(kubectl get "$job" -o 'jsonpath={.status.conditions[?(@.status=="True")].type}') || true # asked again
	done
	[[ " $state " =~ \ Complete\  ]] && return
	echo "error: $job failed, parts $(kubectl get "$job" -o 'jsonpath={.status.failedIndexes}'): kubectl logs --prefix --tail=5 -l job-name=swagwrap-$1" >&2
	exit 1
}

if test "${1:-}" = jobset; then
	template jobset | kubectl create -f -
	exit
fi
run sample
run ensemble
run score
run merge
