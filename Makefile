# make demo   build, record a real command on a small project, show the diff, take it back
# make test   the tests, in their short form; make full is some three times as long
# make check  all that CI asks for: format, vet, lint, race tests, short fuzz, cross-builds
GO       ?= go
BIN      := bin/decree
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# A count, not a duration: at a deadline the fuzzer now and then reports its own end.
FUZZTIME ?= 3000x
export CGO_ENABLED = 0

.PHONY: all peers build install demo test full check fmt vet lint race fuzz cross real soak strace agents long bench bench-base chart growth FORCE docs man clean

all: build

FORCE:

build:
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '-s -w -X decree/cmd.version=$(VERSION)' -o $(BIN) ./cmd/decree

install:
	$(GO) install -trimpath -ldflags '-s -w -X decree/cmd.version=$(VERSION)' ./cmd/decree

demo: build
	@sh testdata/demo/demo.sh $(CURDIR)/$(BIN)

# The short form of the tests tries every kind of fault at fewer of its steps than full; long tries them all.
test: bin/versitygw
	$(GO) test -short -timeout 60m ./...

full: bin/versitygw
	$(GO) test -timeout 120m ./...

check: fmt vet cross lint race fuzz

fmt:
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' | grep -v '^testdata/')); \
	if [ -n "$$out" ]; then echo "gofmt -w these:"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

bin/golangci-lint: tools/go.mod
	@mkdir -p bin
	cd tools && $(GO) build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: bin/golangci-lint
	bin/golangci-lint run --allow-parallel-runners --timeout 10m ./...

# The race detector needs cgo; what is concurrent is all of these. It sleeps a
# second at each process's end, and the recorder's tests run themselves as commands. The sweeps,
# which do one thing after the other over and over, are in make test and make full without it.
SWEEPS := Sweep|PowerLoss|Death|Dies|AllOrders|AnyMoment|Saved|NeverLost|Convert|AllOrNothing|Model|Fill|Wipes|StandIns|Tamper|AnotherWrites|DeepMoves|Notebook|Papermill|Faults|AtEveryStep|TwoErrors|RandomTrees|AnotherDevice|BesideTheStart|BeforeAPersons|AfterItDeletedAll|ALookIntoADraft|WithoutOpenRecords|EveryKind|ReallyStored|PublishGit|OddThings|EnterAfter|ExportStream|LongHistory|CannotBeRead|Coarse|GoesBackAndForth|FilesOfARecord|WalkThrough|OfItsName|GivenUp|DeletedByTheRoutine|TakenBackWhere|ReadErrorStores|IndexLies|InAnyOrder
race:
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -short -race -skip '$(SWEEPS)' -timeout 60m ./capture ./store ./worktree ./history ./project ./runner ./recorder ./queue

fuzz:
	@set -e; for t in $$(grep -Ho '^func Fuzz[A-Za-z]*' */*_test.go | sed 's|/[^/]*_test.go:func |:|'); do \
		echo "fuzz $$t"; $(GO) test ./$${t%%:*} -run '^$$' -fuzz "^$${t##*:}\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; done

cross:
	@set -e; for os in darwin windows; do echo "build for $$os"; GOOS=$$os $(GO) vet ./... ; GOOS=$$os $(GO) build -o /dev/null ./cmd/decree; done

# real: copies of the Go sources, rewritten, damaged and taken back, in place and in
# layers, compared by hash.
real: build
	$(GO) test -count=1 -tags real -run TestReal -v -timeout 20m ./cmd

# lexers: the definitions of languages that page colours, as the library has them.
.PHONY: lexers
lexers:
	@set -e; from=$$($(GO) list -m -f '{{.Dir}}' github.com/alecthomas/chroma/v2); for f in page/lexers/*.xml; do \
		install -m 644 "$$from/lexers/embedded/$${f##*/}" "$$f"; done; install -m 644 "$$from/COPYING" page/lexers/COPYING

# soak: a thousand deaths by SIGKILL on a tree of 2,000 files; SEED sets which.
SEED ?= 1
soak: build
	DECREE_LONG=1 DECREE_SEED=$(SEED) DECREE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -run 'TestSoak$$' -v -timeout 90m ./cmd

# strace: system calls that fail, or in which decree dies, a thousand times.
strace: build
	DECREE_LONG=1 DECREE_SEED=$(SEED) DECREE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -run 'TestStrace$$' -v -timeout 90m ./cmd

# hook-kills: 800 hooks of coding agents, most of which are killed, on a file system in memory where TMPDIR is one.
.PHONY: hook-kills
hook-kills: build
	DECREE_LONG=1 DECREE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -run 'TestKilledHooks$$' -v -timeout 60m ./cmd

# backup-kills: 300 deaths and 300 commands whose requests fail, of backups, drills, prunes and restores on every kind of target.
.PHONY: backup-kills
backup-kills: build bin/versitygw
	DECREE_LONG=1 DECREE_SEED=$(SEED) DECREE_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -run 'TestBackupsUnderKills$$' -v -timeout 90m ./cmd

# agents: real coding agents with decree's hooks, driven by a scripted model on this machine through the
# stories of a person's hour. npm installs them into AGENTS_CACHE once, some 1.6 GB; AGENTS names
# those that are wanted. DECREE_LARGE is a tree for the first capture of a large one.
AGENTS_CACHE ?= $(HOME)/.cache/decree-agents
empty        :=
AGENTS       ?= codex gemini qwen copilot opencode pi cline
AGENT_codex    := @openai/codex@0.169.0
AGENT_gemini   := @google/gemini-cli@0.61.0
AGENT_qwen     := @qwen-code/qwen-code@0.24.4
AGENT_copilot  := @github/copilot@1.0.102
AGENT_opencode := opencode-ai@1.18.33
AGENT_pi       := @mariozechner/pi-coding-agent@0.73.1
AGENT_cline    := cline@3.0.65
agents:
	@command -v npm >/dev/null || { echo "npm is not here: no real agent was tried"; exit 0; }; \
	$(foreach a,$(AGENTS),[ -d "$(AGENTS_CACHE)/$(a)/node_modules" ] || npm install --no-audit --no-fund --fetch-retries=1 --loglevel=error --prefix "$(AGENTS_CACHE)/$(a)" $(AGENT_$(a)) || \
		{ rm -rf "$(AGENTS_CACHE)/$(a)"; echo "npm cannot install $(a): it is not tried"; };) \
	DECREE_AGENTS="$(AGENTS_CACHE)" $(GO) test -count=1 -run 'TestRealAgents$$/^($(subst $(empty) ,|,$(strip $(AGENTS))))$$' -v -timeout 60m ./cmd

# browser: the pages of 'decree serve' in Debian's chromium, by mouse and by keyboard, with and without
# script; pictures of them are in bin/screenshots. Without chromium, or without npm, which fetches axe-core, that is
# said and left out.
AXE     := axe-core-4.14.1
AXE_SUM := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
.PHONY: browser
bin/$(AXE).js:
	@mkdir -p bin; command -v npm >/dev/null || { echo "npm is not here: axe-core looks at no page"; exit 0; }; \
	cd bin && npm pack --silent --fetch-retries=1 axe-core@$(AXE:axe-core-%=%) >/dev/null && echo "$(AXE_SUM)  $(AXE).tgz" | sha256sum -c --quiet && \
	tar -xzf $(AXE).tgz --to-stdout package/axe.min.js > $(AXE).js.new && mv $(AXE).js.new $(AXE).js; rm -f $(AXE).tgz
browser: build bin/$(AXE).js
	rm -rf bin/screenshots
	cd tools/browser && $(GO) vet . && DECREE_BIN=$(CURDIR)/$(BIN) DECREE_AXE=$$(ls $(CURDIR)/bin/$(AXE).js) DECREE_SCREENSHOTS=$(CURDIR)/bin/screenshots \
		$(GO) test -count=1 -parallel 2 -timeout 15m .

# pictures: those of the README, in docs/pictures, of both faces on the demo; it needs chromium, tmux, aha and pngquant.
.PHONY: pictures
pictures: build
	cd tools/browser && DECREE_BIN=$(CURDIR)/$(BIN) DECREE_PICTURES=$(CURDIR)/docs/pictures $(GO) test -count=1 -run 'TestPictures$$' .
	cd docs/pictures && pngquant --force --strip --ext .png 64 *.png

# long: the long forms of the differential and property tests.
long:
	DECREE_LONG=1 $(GO) test -count=1 -timeout 60m ./...

# bench: the operations by size and share, compared with the stored base; about five
# minutes on an idle machine. bench-base stores a new base and draws the chart from it.
BENCH     ?= ^Benchmark(Walk|Hash|Merge|Pack|Encode|Decode|Compare|Diff|Parse|Cold|Checkpoint|Run|Revert|Apply|Restore|History)$$
BENCHTIME ?= 50ms
COUNT     ?= 6
BASE      := docs/bench/base.txt

bin/benchstat: tools/go.mod
	@mkdir -p bin
	cd tools && $(GO) build -o ../bin/benchstat golang.org/x/perf/cmd/benchstat

bin/bench.txt: FORCE
	@mkdir -p bin
	@sh tools/machine.sh > $@.new
	$(GO) test -short -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(COUNT) -timeout 60m \
		./manifest ./patch ./capture ./store ./history ./recorder >> $@.new || { cat $@.new; exit 1; }
	@mv $@.new $@

# attacks: directories swapped for links, other writers, other spellings of .git;
# DECREE_SEED makes them others than the usual ones.
.PHONY: attacks
attacks:
	DECREE_LONG=1 $(GO) test -count=1 -timeout 60m -v -run 'TestSwappedDirectories|TestAnother|TestWritesToOtherSpellings|TestDeathBeforeTheSpelling' ./worktree ./recorder

bench: bin/benchstat bin/bench.txt
	bin/benchstat base=$(BASE) now=bin/bench.txt

bench-base: bin/bench.txt
	@mkdir -p $(dir $(BASE))
	cp bin/bench.txt $(BASE)
	$(MAKE) chart

# chart: docs/growth.svg of the stored base.
chart:
	cd tools && $(GO) run ./growthchart ../$(BASE) > ../docs/growth.svg.new
	@mv docs/growth.svg.new docs/growth.svg

# growth: RUNS runs of ten small changes over a copy of TREE, then RECORDS records on
# a small tree; prints what the last cost beside the first. About ten minutes.
TREE    ?= $(shell $(GO) env GOROOT)/src
RUNS    ?= 1000
RECORDS ?= 10000
growth: build
	GROWTH_TREE='$(TREE)' GROWTH_RUNS=$(RUNS) GROWTH_RECORDS=$(RECORDS) $(GO) test -count=1 -tags growth -run TestGrowth -v -timeout 60m ./cmd

# turns-bench: TURN_EVENTS events of a coding agent's hooks in a copy of TREE: what the first and the last cost.
.PHONY: turns-bench
TURN_EVENTS ?= 10000
turns-bench: build
	GROWTH_TREE='$(TREE)' TURN_EVENTS=$(TURN_EVENTS) $(GO) test -count=1 -tags growth -run TestTurnsBars -v -timeout 60m ./cmd

# backup-bench: what backups of a copy of TREE cost, beside cp and restic (apt-get install restic) in ROUNDS rounds, and after RUNS runs.
ROUNDS  ?= 3
.PHONY: backup-bench
backup-bench: build
	GROWTH_TREE='$(TREE)' GROWTH_RUNS=$(RUNS) BACKUP_ROUNDS=$(ROUNDS) $(GO) test -count=1 -tags growth -run TestBackupBars -v -timeout 120m ./cmd

# faces-bench: what the pages of serve and the screen of ui cost at scale, as the tables of docs/performance.md; some 15
# minutes and 12 GB in SCRATCH, FACES names what is measured.
.PHONY: faces-bench
FACES   ?= history,files,text,binary,million
SCRATCH ?= $(or $(TMPDIR),/tmp)
faces-bench: build
	cd tools && $(GO) run ./facesbench -decree $(CURDIR)/$(BIN) -dir '$(SCRATCH)' -only $(FACES)

# isolated: what isolated runs over a copy of TREE cost, beside runs in place, a git worktree and a copy.
.PHONY: isolated
isolated: build
	GROWTH_TREE='$(TREE)' $(GO) test -count=1 -tags growth -run TestIsolatedBars -v -timeout 60m ./cmd

# The server that the tests of S3 start; without it they build it themselves, or are skipped when -short.
bin/versitygw: tools/s3/go.mod
	@mkdir -p bin
	cd tools/s3 && $(GO) build -o ../../bin/versitygw github.com/versity/versitygw/cmd/versitygw

bin/nfpm: tools/dist/go.mod
	@mkdir -p bin
	cd tools/dist && $(GO) build -o ../../bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm

# dist: what a release consists of, in dist/: static binaries, a deb, an rpm, checksums.
.PHONY: dist
dist: bin/nfpm
	sh tools/dist/dist.sh $(VERSION)

docs:
	$(GO) test ./cmd -run 'TestDocs|TestReference' -update

man: build
	$(BIN) man > docs/decree.1

clean:
	rm -rf bin dist

# peers: decree beside its rivals on the same trees; PEERS is the script's path.
PEERS ?= ../shared/bench/peers.py
peers: build
	python3 $(PEERS) --decree $(CURDIR)/$(BIN) --tree S
