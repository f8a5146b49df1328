# make demo   build, record a real command on a small project, show the diff, take it back
# make test   the tests
# make check  all that CI asks for: format, vet, lint, race tests, short fuzz, cross-builds
GO       ?= go
BIN      := bin/decree
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# A count, not a duration: at a deadline the fuzzer now and then reports its own end.
FUZZTIME ?= 3000x
export CGO_ENABLED = 0

.PHONY: all peers build install demo test check fmt vet lint race fuzz cross real soak strace long bench docs man clean

all: build

build:
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '-s -w -X decree/cmd.version=$(VERSION)' -o $(BIN) ./cmd/decree

install:
	$(GO) install -trimpath -ldflags '-s -w -X decree/cmd.version=$(VERSION)' ./cmd/decree

demo: build
	@sh testdata/demo/demo.sh $(CURDIR)/$(BIN)

test:
	$(GO) test ./...

check: fmt vet lint race fuzz cross

fmt:
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' | grep -v '^testdata/')); \
	if [ -n "$$out" ]; then echo "gofmt -w these:"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

bin/golangci-lint: tools/go.mod
	@mkdir -p bin
	cd tools && $(GO) build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: bin/golangci-lint
	bin/golangci-lint run --timeout 10m ./...

# The race detector needs cgo; what is concurrent is all of these. It sleeps a
# second at each process's end, and the recorder's tests run themselves as commands.
race:
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -short -race ./capture ./store ./worktree ./history ./project ./runner ./recorder

fuzz:
	@set -e; for t in $$(grep -Ho '^func Fuzz[A-Za-z]*' */*_test.go | sed 's|/[^/]*_test.go:func |:|'); do \
		echo "fuzz $$t"; $(GO) test ./$${t%%:*} -run '^$$' -fuzz "^$${t##*:}\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; done

cross:
	@set -e; for os in darwin windows freebsd; do echo "build for $$os"; GOOS=$$os $(GO) vet ./... ; GOOS=$$os $(GO) build -o /dev/null ./cmd/decree; done

# real: copies of the Go sources, rewritten, damaged and taken back, compared by hash.
real: build
	$(GO) test -count=1 -tags real -run TestReal -v -timeout 20m ./cmd

# soak: a thousand deaths by SIGKILL on a tree of 2,000 files; SEED sets which.
SEED ?= 1
soak: build
	DECREE_LONG=1 DECREE_SEED=$(SEED) DECREE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -run 'TestSoak$$' -v -timeout 90m ./cmd

# strace: system calls that fail, or in which decree dies, a thousand times.
strace: build
	DECREE_LONG=1 DECREE_SEED=$(SEED) DECREE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -run 'TestStrace$$' -v -timeout 90m ./cmd

# long: the long forms of the differential and property tests.
long:
	DECREE_LONG=1 $(GO) test -count=1 -timeout 60m ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

docs:
	$(GO) test ./cmd -run 'TestDocs|TestReference' -update

man: build
	$(BIN) man > docs/decree.1

clean:
	rm -rf bin

# peers: decree beside its rivals on the same trees; PEERS is the script's path.
PEERS ?= ../shared/bench/peers.py
peers: build
	python3 $(PEERS) --decree $(CURDIR)/$(BIN) --tree S
