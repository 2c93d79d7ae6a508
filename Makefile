# swagwrap: `make demo` on a fresh machine does everything. Needs Go 1.26 or
# later, a C compiler, and npm or pip (once, to fetch ONNX Runtime).

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
PURE = ./weights/... ./onnxio/... ./swag/... ./bnupdate ./calibrate/...

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

# The options are those of the tests: with others, such as -trimpath, every package would be compiled again.
build: tools ## bin/swagwrap
	go build -o bin/swagwrap ./cmd/swagwrap

setup: build ## fetch ONNX Runtime once into the user's cache (not if SWAGWRAP_ORT_LIB names one)
	@test -n "$$SWAGWRAP_ORT_LIB" || ./bin/swagwrap setup

demo: setup ## the main job on sample checkpoints; the results are in demo/
	./bin/swagwrap try --sample --force -o demo

CIFAR = fixtures/cifar/checkpoints

cifar: setup ## the first run on CIFAR-10 of docs/results.md: a published ResNet-20, in six minutes
	mkdir -p cifar
	test -e cifar/test.csv || tar -xJf fixtures/cifar/pictures.tar.xz -C cifar
	./bin/swagwrap fit --force --template $(CIFAR)/model.onnx --task classes --class-names cifar/test --preprocess 'mean=.485,.456,.406 std=.229,.224,.225' \
		--augment cifar -o cifar/posterior.safetensors $(CIFAR)
	./bin/swagwrap compare --force --bn-data cifar/statistics.csv --val cifar/val.csv \
		--report cifar/report.html cifar/posterior.safetensors cifar/test.csv

uci: setup ## the regressions of docs/results.md on boston and yacht after 50 epochs, from the checkpoints here and DATA=UCI_Datasets (fixtures/uci says whence); RESULTS=--check only tells what would change
	@test -d "$(DATA)" || { echo "error: DATA=FOLDER is to be the folder UCI_Datasets: fixtures/uci/README.md says whence" >&2; exit 1; }
	mkdir -p uci
	tar -xJf fixtures/uci/checkpoints.tar.xz -C uci
	$(PYTHON) fixtures/uci/data.py --data "$(DATA)" --out uci
	go run ./fixtures/results --uci uci $(RESULTS)

FILMS = cases/films

cases: setup ## a small BERT on film reviews, of docs/results.md: the first run, in two minutes
	mkdir -p cases
	test -e $(FILMS)/test.npz || tar -xJf fixtures/cases/films.tar.xz -C cases
	./bin/swagwrap fit --force --template $(FILMS)/seed-1/model.onnx --task classes --class-names $(FILMS)/names.txt -o cases/posterior.safetensors $(FILMS)/seed-1/epoch-*.pt
	./bin/swagwrap compare --force --val $(FILMS)/val.npz --iterates 'SGD=$(FILMS)/seed-1/sgd.pt' --report cases/report.html cases/posterior.safetensors $(FILMS)/test.npz

gain: setup ## a row of "Where SWAG pays" of docs/results.md: continues three runs on MNIST with PYTHON (torch), then compares, in ten minutes
	$(PYTHON) fixtures/results/rates.py gain/runs 0.1
	fixtures/results/gain.sh mnist gain/runs gain/out
	$(PYTHON) fixtures/results/gain.py gain/out

camvid: setup ## segmentation, of docs/results.md: trains a U-Net with PYTHON (torch), then compares, in ten minutes; DATA=CamVid (fixtures/dense says whence)
	@test -d "$(DATA)/testannot" || { echo "error: DATA=FOLDER is to be the folder CamVid: fixtures/dense/README.md says whence" >&2; exit 1; }
	test -e camvid/run-1/model.onnx || $(PYTHON) fixtures/dense/camvid.py "$(DATA)" camvid/run-1 1
	./bin/swagwrap fit --force --template camvid/run-1/model.onnx --task classes --class-names fixtures/dense/camvid.txt --ignore-index 11 \
		--preprocess 'crop-mode=squash input-size=96x128 interpolation=bilinear' --augment 'Resize((96, 128)), RandomHorizontalFlip' \
		-o camvid/posterior.safetensors camvid/run-1
	./bin/swagwrap compare --force --bn-data "$(DATA)/train" --val "$(DATA)/val" --labels "val=$(DATA)/valannot" --labels "$(DATA)/testannot" \
		--report camvid/report.html camvid/posterior.safetensors "$(DATA)/test"

TREEBANK = tokens/run-1

tokens: setup ## part-of-speech tags, of docs/results.md: trains a tagger with PYTHON (torch), then compares, in eight minutes; DATA=UD_English-EWT (fixtures/dense says whence)
	@test -d "$(DATA)/not-to-release" || { echo "error: DATA=FOLDER is to be a checkout of UD_English-EWT: fixtures/dense/README.md says whence" >&2; exit 1; }
	test -e $(TREEBANK)/model.onnx || $(PYTHON) fixtures/dense/ewt.py "$(DATA)" $(TREEBANK) 1
	./bin/swagwrap fit --force --template $(TREEBANK)/model.onnx --task classes --class-names fixtures/dense/ewt.txt --pad ids=0 -o tokens/posterior.safetensors $(TREEBANK)
	./bin/swagwrap compare --force --val tokens/val.jsonl --report tokens/report.html tokens/posterior.safetensors tokens/test.jsonl

LSTM = language/run-1

language: setup ## a language model, of docs/results.md: trains an LSTM with PYTHON (torch), then compares, in ten minutes; DATA=FOLDER of WikiText-2 or Penn Treebank (fixtures/language says whence)
	@test -f "$(DATA)/valid.txt" || test -f "$(DATA)/ptb.valid.txt" || { echo "error: DATA=FOLDER is to have a text: fixtures/language/README.md says whence" >&2; exit 1; }
	test -e $(LSTM)/model.onnx || $(PYTHON) fixtures/language/train.py "$(DATA)" $(LSTM) 1
	./bin/swagwrap fit --force --template $(LSTM)/model.onnx=$(LSTM)/sgd.pt --task next-token --class-names language/vocab.txt --rank 10 --mean $(LSTM)/swa.pt \
		-o language/posterior.safetensors $(LSTM)/checkpoint-*.pt
	./bin/swagwrap compare --force --members 30 --methods sgd,sgd-temp,iterates,swa,swa-temp,swag,swag-temp --val language/val.txt --iterates NT-ASGD=$(LSTM)/ntasgd.pt \
		--iterates 'falling rate=$(LSTM)/sgd.pt' --report language/report.html language/posterior.safetensors language/test.txt

# Test programs without tables for debuggers are linked sooner; go vet is run by check.
# TESTEXEC may name a program that starts them: .ci/run does.
LEAN = -vet=off -ldflags=-w $(TESTEXEC)

# Go ends a package after 10 minutes. A slow or busy machine takes longer for cmd/swagwrap. A test that hangs still ends.
PATIENCE = 60m

test: setup ## all tests
	go test $(LEAN) -timeout $(PATIENCE) ./...

# The packages with goroutines of their own.
CONCURRENT = ./weights ./swag ./bnupdate ./internal/ort ./internal/dataset ./internal/dataset/listing ./internal/infer ./internal/infer/batchnorm ./internal/ensemble ./internal/baseline

# These tests compute much: they compare a number with chance or with PyTorch's, or damage a file many times. All their goroutines
# also run in other tests. The race detector sees these tests every night.
LONG = TestLoss TestSampleSizeControl TestCheckOfFewImages TestAugmentedGolden TestAugmentedCheck TestExporters TestCheckOfSimulatedTraining \
	TestGoldenMethods TestGoldenMixture TestDeepEnsembles TestLaplaceDraws TestLaplacePrior \
	TestRankIsThatOfAFit TestVarianceRatio TestDistribution TestNormals TestListingMemory TestWideTables \
	TestDamageIsFound TestForgedFiles TestMutatedFiles TestForgedEntries TestInputsSurviveGarbageCollection TestExportsFuse \
	TestKernelsSameBits TestTransformsDiffer TestAugment TestExplicitBatchNorm TestValidationPasses TestSWAGMemberTemp TestSWAGTemp \
	TestDeploy TestDropout TestLaplaceValidation TestTemperatureOfSample

# Parquet and what it imports, net/http among it, would take a third of the time of compiling for the race detector. The
# product's code for it has no goroutines. These tests read such files.
PARQUET = TestListedPart TestListedRefused TestTruthOfLists

test-openvino: setup ## tests of the provider OpenVINO; fetches it, linux/amd64 only
	./bin/swagwrap setup --provider openvino
	go test $(LEAN) -count=1 -timeout $(PATIENCE) -tags openvino -run OpenVINO ./cmd/swagwrap ./internal/infer/batchnorm

test-webgpu: setup ## tests of the provider WebGPU on a software device; installs Mesa 25 if it is missing, which wants root and Debian
	. ./fixtures/webgpu/lavapipe.sh && ./bin/swagwrap setup --provider webgpu && \
		go test $(LEAN) -count=1 -timeout $(PATIENCE) -tags webgpu -run GPU ./internal/ort ./cmd/swagwrap

test-cuda: setup ## tests of the provider CUDA; wants an NVIDIA GPU, and PyTorch for CUDA 13 in the active Python environment
	./bin/swagwrap setup --provider cuda
	go test $(LEAN) -count=1 -timeout $(PATIENCE) -tags cuda -run 'GPU|CUDA' ./internal/ort ./cmd/swagwrap

race: setup ## the concurrent packages under the race detector
	go test $(LEAN) -race -short -tags noparquet -timeout $(PATIENCE) -skip "^($$(echo $(LONG) $(PARQUET) | tr ' ' '|'))$$" $(CONCURRENT)

# The packages whose tests try something more often at night: those that call promise.Figure.
FIGURES = ./calibrate ./internal/dataset ./internal/dataset/text ./internal/ort ./internal/infer ./internal/infer/intake ./internal/infer/store ./internal/moments ./internal/predictions ./internal/ensemble \
	./internal/baseline ./internal/study/compare ./cmd/swagwrap

# FUZZTIME is for each target. Minimising with Go's default of a minute takes most of it. A target that ends with "context deadline
# exceeded" and writes no input has met a race in Go's own clock (golang/go#75804): run it again.
FUZZTIME = 30s

nightly: setup ## what takes an hour or two: race everywhere, networks above 2 GiB (25 GB in TMPDIR), the nightly figures of docs/reliability.md, all fuzz targets; pages in Chromium
	go test -race -count=1 -timeout 180m -skip '^(TestMemory|TestBombs)$$' ./... # which count memory, and so the detector's own
	go test -tags large -p 1 -count=1 -timeout 180m -v -skip Scripts ./fixtures/large $(FIGURES)
	go -C fixtures/cluster/kubernetes test -count=1 -ldflags=-w ./...
	$(MAKE) test-openvino test-webgpu
	@grep -rn --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*_test.go:[0-9]*:func| |; s|(.*||' | sort -u | { failed=; while read -r dir fuzz; do \
		echo "== $$dir $$fuzz"; go test -run '^$$' -fuzz "^$$fuzz\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x "$$dir" || failed="$$failed $$fuzz"; \
		done; test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }; }

PYTHON ?= python3

# Its tag says nothing of an old glibc; that of make dist does.
wheel: build ## the Python package for this machine, in bin/python/; PYTHON has hatchling
	rm -rf bin/python
	packaging/wheel.sh bin/swagwrap "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_platform().replace("-", "_").replace(".", "_"))')" \
		"$$(bin/swagwrap --version | awk '{ print $$NF }')" bin/python

# As a user has it: the wheel, in a folder of its own.
python: wheel ## tests of the Python module; PYTHON has packaging/python/tests/requirements.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --target bin/python/lib bin/python/*.whl
	cd packaging/python && $(PYTHON) -m mypy src
	PYTHONPATH=bin/python/lib $(PYTHON) -m pytest -q -p no:cacheprovider packaging/python/tests

dist: tools ## a release in dist/: archives, wheels, bills of materials, SHA-256; fetches a C compiler with pip
	PYTHON="$(PYTHON)" packaging/dist.sh

cluster: setup ## parts on a real Slurm of eight nodes on this machine: kills, a lost node, preemption, time limits; and from an S3 server; wants root and Debian
	fixtures/cluster/test.sh
	fixtures/cluster/s3.sh

cluster-kubernetes: setup ## parts with Kubernetes' own Job controller: kills, drained nodes, mistakes; the first build takes five minutes
	fixtures/cluster/kubernetes/test.sh

pages: setup ## look at all pages in Chromium, at three widths, light and dark: nothing is cut off; needs Chromium (Debian: apt install chromium), or CHROMIUM=FILE
	go test $(LEAN) -tags large -count=1 -v -run TestPages ./cmd/swagwrap

bench: build ## fit and sampling, side by side with PyTorch if PYTHON has it
	go run ./fixtures/bench fit --python "$(PYTHON)" $(BENCH)

bench-score: build ## scoring, side by side with bare ONNX Runtime and PyTorch; FULL=1: 2,000 photographs, OPENVINO=1: that provider too
	go run ./fixtures/bench score --python "$(PYTHON)" $(if $(FULL),--images 2000 --repeat 1) $(if $(OPENVINO),--openvino) $(BENCH)

bench-gpu: setup ## scoring on a GPU, side by side with PyTorch; PYTHON has torch, torchvision and onnxscript; wants swagwrap setup --provider cuda
	$(PYTHON) fixtures/bench/gpu.py bin/bench-gpu $(BENCH)

results: build ## the tables of docs/results.md, in seven minutes; RESULTS=--check only tells what would change
	go run ./fixtures/results $(RESULTS)

bench-go: setup ## Go's own benchmarks, without the tests
	go test -run '^$$' -bench . -benchmem ./...

check: tools ## format, vet, staticcheck, pure packages without cgo, Kubernetes' manifests if they changed
	@files=$$(gofmt -l .); test -z "$$files" || { echo "error: not formatted, run gofmt -w:" $$files >&2; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	CGO_ENABLED=0 go build $(PURE)
	sha256sum --check --status $(PASSED) || go -C fixtures/cluster/kubernetes test -ldflags=-w ./...

# The files with which the test of Kubernetes' manifests has passed. Kubernetes' types take a minute to build, so that check
# runs the test only if one of these files has changed.
PASSED = fixtures/cluster/kubernetes/passed.sha256

kubernetes: ## Kubernetes' manifests against its own types; remembers the files for check
	go -C fixtures/cluster/kubernetes test -count=1 -ldflags=-w ./...
	git ls-files docs/cluster/kubernetes fixtures/cluster/kubernetes | grep -v '^$(PASSED)$$' | xargs sha256sum >$(PASSED)

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

.PHONY: help setup build demo cifar gain camvid cases uci results test test-openvino test-webgpu test-cuda race nightly bench bench-score bench-gpu bench-go cluster cluster-kubernetes kubernetes check wheel python dist tools pages language tokens
