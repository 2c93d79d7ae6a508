# Shared by the findings. A finding sources this file, names its packages with `packages`, and hands a program to `check`.
# It works in a folder of its own, which is removed at the end. Environments are kept in $XDG_CACHE_HOME/swagwrap-findings, or
# under $TMPDIR, one for each set of packages. Exit status: 0 as described, 1 other software has changed, 2 it could not run.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${TMPDIR:-/tmp}}/swagwrap-findings
work=$(mktemp -d "${TMPDIR:-/tmp}/finding.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 2' INT TERM
mkdir -p "$cache"
cd "$work"
export OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=3 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# Packages that several findings share, so that one environment serves them.
ENGINES="numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 scipy==1.17.1 tract==0.23.9"
JAX="flax==0.12.8 jax==0.10.2 keras==3.15.1 numpy==2.4.6 optax==0.2.8 orbax-checkpoint==0.11.36"
SCORES="numpy==2.4.6 properscoring==0.1 scikit-learn==1.9.1 scipy==1.17.1 scoringrules==0.10.0 xskillscore==0.0.29"
TORCH="torch==2.15.0 accelerate==1.15.0 asdl==0.1.5 backpack-for-pytorch==1.7.1 curvlinops-for-pytorch==3.0.1 diffusers==0.42.1"
TORCH="$TORCH laplace-torch==0.3 monai==1.6.1 numpy==2.4.6 peft==0.21.2 scikit-learn==1.9.1 timm==1.0.31 torchmetrics==1.9.0"
TORCH="$TORCH torchensemble==0.2.0 torchvision==0.29.2 transformers==5.24.0"
TREES="catboost==1.2.10 lightgbm==4.7.0 numpy==2.4.6 onnx==1.23.2 onnxmltools==1.16.0 onnxruntime==1.32.0 pandas==3.1.1"
TREES="$TREES skl2onnx==1.20.0 xgboost-cpu==3.2.0"

# environment makes a Python environment once and prints its folder. It is built under another name and then renamed, so that a folder of
# the final name is complete, and two runs may share a cache. The first argument is a folder of packages to see as well, or "".
environment() (
	below=$1
	shift
	env=$cache/$(printf '%s\n' "$below" "$@" | cksum | cut -d' ' -f1)-$(printf '%s' "$1" | tr -c 'a-zA-Z0-9.' '-')
	if ! test -d "$env"; then
		new=$(mktemp -d "$cache/building.XXXXXX")
		trap 'rm -rf "$new"' EXIT
		trap 'exit 2' INT TERM
		{
			python3 -m venv "$new" &&
				{ test -z "$below" || printf '%s\n' "$below" >"$(site "$new")/below.pth"; } &&
				"$new/bin/python" -m pip install --quiet "$@"
		} >&2 || { echo "error: could not install: $*" >&2; exit 2; }
		# The rename fails where another run was first: its folder is as good.
		python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$new" "$env" 2>/dev/null || test -d "$env" || {
			echo "error: could not rename $new to $env" >&2
			exit 2
		}
	fi
	printf '%s\n' "$env"
)

# site prints the folder of packages of an environment.
site() {
	"$1/bin/python" -c 'import site; print(site.getsitepackages()[0])'
}

# packages NAME==VERSION… makes $PYTHON with them. PyTorch comes first if it is among them: it takes gigabytes, so it is
# installed once for all findings.
packages() {
	below=
	case $1 in torch==*)
		below=$(environment "" "$1") || exit 2
		below=$(site "$below")
		test $# -eq 1 || shift
		;;
	esac
	env=$(environment "$below" "$@") || exit 2
	PYTHON=$env/bin/python
}

# check runs the Python program on standard input. The program says what it saw with seen.py.
check() {
	cat >finding.py
	PYTHONPATH=$here "$PYTHON" finding.py
}

# jars GROUP:NAME:VERSION… puts these Java archives into the folder of the finding. Maven keeps them.
jars() {
	for jar; do
		mvn -q dependency:copy -Dartifact="$jar" -DoutputDirectory="$work" >&2 || { echo "error: Maven could not get $jar" >&2; exit 2; }
	done
}

# debian NAME VERSION installs a package of Debian if it is missing, which wants root. Another version than VERSION cannot run.
debian() {
	dpkg -s "$1" >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1"; } >&2 || {
		echo "error: $1 of Debian is missing: run as root: apt-get install $1" >&2
		exit 2
	}
	version=$(dpkg-query -W -f '${Version}' "$1")
	case $version in "$2"-*) ;; *)
		echo "error: $1 is $version, want $2" >&2
		exit 2
		;;
	esac
}
