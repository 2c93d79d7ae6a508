# swagwrap: `make demo` on a fresh machine does everything. Needs Go 1.26 or
# later, a C compiler, and npm or pip (once, to fetch ONNX Runtime).

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
PURE = ./weights/... ./onnxio/... ./swag/... ./bnupdate ./calibrate/...

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

# These targets build the code for browsers of export --web first. A program without it says what to type. Once compiled, each
# build keeps it up to date.
WITH_PAGE = web test nightly python dist pages
PAGE = internal/webpage/page

# The options are those of the tests: with others, such as -trimpath, every package would be compiled again.
build: tools $(if $(wildcard $(PAGE)/inputs.wasm.gz)$(filter $(WITH_PAGE),$(MAKECMDGOALS)),page) ## bin/swagwrap
	go build -ldflags='-s -w' -o bin/swagwrap ./cmd/swagwrap # without tables for debuggers: half the linker's time

web: build ## bin/swagwrap with the code for browsers, which export --web needs

# Go's code for pictures and tables in WebAssembly, and the loader of the same Go. The program embeds both. The same Go gives
# the same bytes.
page: $(PAGE)/inputs.wasm.gz $(PAGE)/wasm_exec.js

$(PAGE)/inputs.wasm.gz: go.mod $(shell find internal weights -name '*.go' ! -name '*_test.go')
	GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -tags noparquet -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o $(@:.gz=) ./internal/webpage/inputs/wasm
	gzip -9 -n -f $(@:.gz=)

$(PAGE)/wasm_exec.js: $(PAGE)/inputs.wasm.gz
	cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" $@ && chmod u+w $@

setup: build ## fetch ONNX Runtime once into the user's cache (not if SWAGWRAP_ORT_LIB names one)
	@test -n "$$SWAGWRAP_ORT_LIB" || ./bin/swagwrap setup

demo: setup ## the main job on sample checkpoints; the results are in demo/
	./bin/swagwrap try --sample --force -o demo

# Test programs without tables for debuggers and symbols are linked sooner, and gold is faster than ld; go vet is run by check.
# TESTEXEC may name a program that starts them: .ci/run does.
LEAN = -vet=off -ldflags='-s -w$(if $(shell command -v ld.gold 2>/dev/null), -extldflags=-fuse-ld=gold)' $(TESTEXEC)

# Go ends a package after 10 minutes. A slow or busy machine takes longer for cmd/swagwrap. A test that hangs still ends.
PATIENCE = 60m

test: setup ## all tests; ONCE=1: those that race does not run
	go test $(LEAN) -timeout $(PATIENCE) $(if $(ONCE),$$(go list ./... | grep -vxF "$$(go list $(CONCURRENT))"),./...)
	$(if $(ONCE),go test $(LEAN) -timeout $(PATIENCE) -run '^($(call any,$(LONG) $(SHORTENED)))$$' $(CONCURRENT))

# The packages that start goroutines. The detector also sees the packages that these call.
OPEN = (
CONCURRENT = $(shell grep -rlE --include='*.go' --exclude='*_test.go' '[.]Go[$(OPEN)]|^\s+go [a-z]' weights onnxio swag bnupdate calibrate internal | sed 's|/[^/]*$$||; s|^|./|' | sort -u)

# These tests compute much: they compare a number with chance or with PyTorch's, or damage a file many times. All their goroutines
# also run in other tests. The race detector sees these tests every night.
LONG = TestCheckOfSimulatedTraining TestGoldenMethods TestGoldenMixture TestDeepEnsembles TestLaplaceDraws TestLaplacePrior \
	TestRankIsThatOfAFit TestVarianceRatio TestDistribution TestNormals TestDamageIsFound TestForgedFiles TestMutatedFiles \
	TestForgedEntries TestInputsSurviveGarbageCollection TestExportsFuse TestKernelsSameBits TestValidationPasses TestSWAGMemberTemp \
	TestSWAGTemp TestDeploy TestDropout TestLaplaceValidation TestTemperatureOfSample TestRegressions TestFalseAlarms TestOutputProperties TestPower \
	TestPlantedBeside TestReplacedAfterVerify TestVerify TestVerifyOwner TestECENoiseCoverage TestEvaluateJudgesSetsOnOtherHalf \
	TestCoverageRange TestRangeCovers TestSizes TestDifferenceOfLosses TestExactMean TestAnsweringRules TestSetsOfUnits TestTemperatureError TestFitVectorScalingFindsMinimum \
	TestManyTensors TestMatchSimplified TestFoldedConstants TestStore TestTokens TestTokensOfLargeVocabulary TestCrossFits TestRefinementOfUnits \
	TestECENoise TestHonest TestUnitFolds TestCoverage TestAPSKeepsItsGuarantee TestVectorGolden TestFigures TestPictures TestKnown TestLabelsTell \
	TestFusedAverage TestSettled TestBlocksSameBits TestParameterized TestExportedMemberScoresAlike TestAdapted TestGroups \
	TestFixedBatch TestHalf

# These do less under the race detector, in go test's short mode.
SHORTENED = TestScorerSameBits TestManySessions TestScoreCorruptPictures TestTransforms

# For -run and -skip.
SPACE = $(subst ,, )
any = $(subst $(SPACE),|,$(strip $(1)))

# OpenVINO is offered for linux/amd64. WebGPU runs on a software device here: Mesa 25 is installed if it is missing, which wants root
# and Debian. CUDA wants an NVIDIA GPU, and PyTorch for CUDA 13 in the active Python environment.
test-provider: setup ## tests of PROVIDER=openvino, webgpu or cuda, which is fetched
	@case "$(PROVIDER)" in openvino|webgpu|cuda) ;; *) echo "error: PROVIDER=$(PROVIDER): want openvino, webgpu or cuda" >&2; exit 1;; esac
	if test "$(PROVIDER)" = webgpu; then . ./fixtures/webgpu/lavapipe.sh || exit; fi; ./bin/swagwrap setup --provider $(PROVIDER) && \
		go test $(LEAN) -count=1 -timeout $(PATIENCE) -tags $(PROVIDER) -run 'OpenVINO|GPU|CUDA' ./internal/ort ./internal/infer/batchnorm ./cmd/swagwrap

# Parquet and what it imports, net/http among it, would take a third of the time of compiling for the race detector.
race: setup ## the concurrent packages under the race detector
	go test $(LEAN) -race -short -tags noparquet -timeout $(PATIENCE) -skip '^($(call any,$(LONG)))$$' $(CONCURRENT)

# The packages whose tests try something more often at night: those that call reliability.Figure.
FIGURES = ./calibrate ./calibrate/chance ./internal/dataset ./internal/tokenizer ./internal/ort ./internal/infer ./internal/infer/batchnorm ./internal/infer/probe ./internal/infer/rounding ./internal/infer/store ./internal/moments ./internal/statedict ./internal/predictions ./internal/ensemble ./internal/guarantee \
	./internal/baseline ./internal/study/compare ./internal/study/settling ./cmd/swagwrap

# FUZZTIME is for each target. Minimising with Go's default of a minute takes most of it. A target that ends with "context deadline
# exceeded" and writes no input has met a race in Go's own clock (golang/go#75804): run it again.
FUZZTIME = 30s

nightly: setup ## what takes an hour or two: race everywhere, networks above 2 GiB (25 GB in TMPDIR), the nightly figures of docs/reliability.md, all fuzz targets; pages in Chromium; Spark and Ray
	go test -race -count=1 -timeout 180m -skip '^(TestMemory|TestBombs)$$' ./... # which count memory, and so the detector's own
	go test -tags large -p 1 -count=1 -timeout 180m -v -skip Scripts ./fixtures/large $(FIGURES)
	go -C fixtures/cluster/kubernetes test -count=1 -ldflags=-w ./...
	go run $(ACTIONLINT)
	$(MAKE) -C fixtures/cluster engines
	$(MAKE) test-runtime RUNTIME=1.30.0
	$(MAKE) test-provider PROVIDER=openvino
	$(MAKE) test-provider PROVIDER=webgpu
	@grep -rn --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*_test.go:[0-9]*:func| |; s|(.*||' | sort -u | { failed=; while read -r dir fuzz; do \
		echo "== $$dir $$fuzz"; go test -run '^$$' -fuzz "^$$fuzz\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x "$$dir" || failed="$$failed $$fuzz"; \
		done; test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }; }

PYTHON ?= python3

# The bits of results, and what every accepted ONNX Runtime does.
test-runtime: tools ## tests of batch norm, sessions and goldens with another ONNX Runtime: RUNTIME=1.30.0, which is fetched
	rm -rf bin/runtime && $(PYTHON) -m pip download --quiet --no-deps --only-binary=:all: --dest bin/runtime onnxruntime==$(RUNTIME)
	cd bin/runtime && $(PYTHON) -m zipfile -e *.whl .
	SWAGWRAP_ORT_LIB="$$(echo $(CURDIR)/bin/runtime/onnxruntime/capi/libonnxruntime.*$(RUNTIME)*)" \
		go test $(LEAN) -count=1 -timeout $(PATIENCE) ./internal/ort ./internal/infer/... ./internal/ensemble ./internal/baseline ./bnupdate

# As a user has it: the wheel, in a folder of its own.
python: dist ## tests of the Python module; PYTHON has packaging/python/tests/requirements.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target bin/python dist/*.whl
	cd packaging/python && $(PYTHON) -m mypy src
	PYTHONPATH="$(CURDIR)/bin/python" $(PYTHON) -m pytest -q -p no:cacheprovider packaging/python/tests

dist: build ## the Python wheel of this machine, in dist/; ALL=1: a release with archives and wheels of all platforms
	PYTHON="$(PYTHON)" packaging/$(if $(ALL),dist.sh,wheel.sh)

# The dry run is a test of the whole: DRY=1 takes the notes of "Unreleased", and signs with a key that is thrown away.
release: tools ## VERSION=v0.1.0: build a release in dist/, try it in empty environments, write its notes, sign it (SIGNING_KEY=FILE); DRY=1: rehearse
	PYTHON="$(PYTHON)" SIGNING_KEY="$(SIGNING_KEY)" DRY="$(DRY)" packaging/release.sh "$(VERSION)"

pages: setup ## look at all pages in Chromium, at three widths, light and dark: nothing is cut off; needs Chromium (Debian: apt install chromium), or CHROMIUM=FILE
	go test $(LEAN) -tags large -count=1 -v -run 'TestPages|TestWeb' ./cmd/swagwrap

# A finding is what other software does where a good guess misses. It installs public packages into a cache folder: the first run of
# all takes gigabytes and most of an hour.
findings: ## run what is known of other software again, without swagwrap: all, or NAMES="a b"; a table says what has changed
	@findings/run.sh $(NAMES)

programs: setup ## train with real training programs, and compare with PyTorch: all, or NAMES="a b"; gigabytes of packages
	@fixtures/programs/run.sh $(NAMES)

check: tools ## format, vet, staticcheck, pure packages without cgo, Kubernetes' manifests if they changed
	@files=$$(gofmt -l .); test -z "$$files" || { echo "error: not formatted, run gofmt -w:" $$files >&2; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	CGO_ENABLED=0 go build $(PURE)
	$(MAKE) -C fixtures/cluster check

# A missing tool is named before anything else fails for the lack of it.
tools:
	@command -v go >/dev/null 2>&1 || { \
		echo "error: Go is not installed" >&2; \
		echo "hint: get Go 1.26 or later from https://go.dev/dl/" >&2; exit 1; }
	@v=$$(go env GOVERSION) || v="none that can build this module"; case "$$v" in \
		go1.2[6-9]*|go1.[3-9][0-9]*|go[2-9].*|devel*) ;; \
		*)	echo "error: Go is too old: $$v, want go1.26 or later" >&2; \
			echo "hint: get it from https://go.dev/dl/, or unset GOTOOLCHAIN to let Go fetch it" >&2; exit 1;; esac
	@test "$$(go env CGO_ENABLED)" = 1 && command -v "$$(go env CC | cut -d' ' -f1)" >/dev/null 2>&1 || { \
		echo "error: no C compiler, or CGO_ENABLED=0: ONNX Runtime is called through cgo" >&2; \
		echo "hint: install gcc or clang (Debian: apt install build-essential; macOS: xcode-select --install)" >&2; exit 1; }

.PHONY: help setup build web page demo test test-provider test-runtime race nightly check python dist release pages findings programs tools
