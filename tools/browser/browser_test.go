package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// What the tests are run with; see the Makefile.
var (
	program = os.Getenv("DECREE_BIN")
	axeFile = os.Getenv("DECREE_AXE")         // axe.min.js; "": pages are not looked at by it
	shots   = os.Getenv("DECREE_SCREENSHOTS") // a directory for pictures; "": none are made
)

const patience = 30 * time.Second // for what a browser does in some milliseconds

// chromium is one browser for all tests.
var chromium context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if program == "" {
		fmt.Println("DECREE_BIN names no program: no page was tried")
		return 0
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Println("chromium is not here: no page was tried")
		return 0
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("lang", "en"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, end := chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Println("chromium does not start:", err)
		return 1
	}
	chromium = ctx
	return m.Run()
}

// A site is a running 'decree serve'.
type site struct {
	*testing.T
	home    string
	address string // with the token
	stop    func()
}

// serve starts 'decree serve' with arguments; TMPDIR is below home.
func serve(t *testing.T, home string, args ...string) *site {
	t.Helper()
	cmd := exec.Command(program, append([]string{"serve"}, args...)...)
	cmd.Dir = home
	cmd.Env = environ(home)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", &said)
	s := &site{T: t, home: home, address: strings.TrimSpace(line)}
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	t.Cleanup(s.stop)
	return s
}

func environ(home string) []string {
	env := []string{"HOME=" + home, "XDG_DATA_HOME=" + filepath.Join(home, "data"), "TMPDIR=" + home, "TZ=UTC", "LC_ALL=C.UTF-8", "TERM=dumb"}
	return append(env, "PATH="+os.Getenv("PATH"))
}

// demo serves the demo project, whose root is returned too.
func demo(t *testing.T, args ...string) (*site, string) {
	t.Helper()
	home := t.TempDir()
	s := serve(t, home, append([]string{"--demo"}, args...)...)
	roots, err := filepath.Glob(filepath.Join(home, "decree-demo-*", "tally"))
	require.NoError(t, err)
	require.Len(t, roots, 1)
	return s, roots[0]
}

// decree runs a command in a tree.
func decree(t *testing.T, home, root string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = root, environ(home)
	if store := filepath.Join(filepath.Dir(root), "store"); filepath.Base(root) == "tally" {
		cmd.Env = append(cmd.Env, "DECREE_STORE="+store)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", args, out)
	return strings.TrimSpace(string(out))
}

// A hand is how a person uses a page.
type hand struct {
	keyboard, script bool
}

func (h hand) String() string {
	by, with := "mouse", "without script"
	if h.keyboard {
		by = "keyboard"
	}
	if h.script {
		with = "with script"
	}
	return by + " " + with
}

var hands = []hand{{false, true}, {true, true}, {false, false}, {true, false}}

// A tab of the browser is on a site, in a browser profile of its own.
type tab struct {
	*testing.T
	hand
	home string
	ctx  context.Context
	mu   sync.Mutex
	said []string // errors and violations that the browser reported
}

// open opens a site as a person does who clicks on the printed address.
func (s *site) open(t *testing.T, h hand) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	b := &tab{T: t, hand: h, home: s.home, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.heard))
	call(b, log.Enable, cdp.Empty{})
	call(b, audits.Enable, cdp.Empty{})
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !h.script})
	b.size(1280, 900)
	b.do(chromedp.Navigate(s.address))
	b.settled()
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.said {
			t.Error("the browser reported: " + text)
		}
		if t.Failed() {
			b.failure()
		}
	})
	return b
}

// heard takes down what the browser reports.
func (b *tab) heard(event any) {
	var text string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
			text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if d := e.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
			text = fmt.Sprintf("violation of %s by %s", d.ViolatedDirective, d.BlockedURL)
		}
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint("exception: ", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			text = fmt.Sprint("console: ", e.Args)
		}
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.said = append(b.said, text)
	}
}

// forgive forgets a report that the test has caused: a refused request is an error to the browser.
func (b *tab) forgive(part string) {
	b.Helper()
	b.until("report of "+part, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, text := range b.said {
			if strings.Contains(text, part) {
				b.said = append(b.said[:i], b.said[i+1:]...)
				return true
			}
		}
		return false
	})
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	require.NoError(b, chromedp.Do(ctx, actions...))
}

// get is the result of an action.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	out, err := chromedp.Run(ctx, action)
	require.NoError(b, err)
	return out
}

// call is a command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	out, err := chromedp.Call(ctx, command, params)
	require.NoError(b, err)
	return out
}

// eval evaluates an expression in the page, whether or not the page may have scripts.
func eval[T any](b *tab, expression string) (out T) {
	b.Helper()
	return get(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// until waits for what the browser or the server is about to do.
func (b *tab) until(what string, is func() bool) {
	b.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			text := b.text()
			require.Fail(b, "there is no "+what, "%s", text[:min(len(text), 1000)])
		}
	}
}

// settled waits until a page is there.
func (b *tab) settled() {
	b.Helper()
	b.until("a page", func() bool {
		return b.try(`document.readyState === 'complete' && location.protocol !== 'chrome-error:'`)
	})
}

// try is an expression that may fail while a page goes and another one comes.
func (b *tab) try(expression string) (is bool) {
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
	return err == nil && is
}

func (b *tab) size(width, height int64) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
}

// text is what a person reads on the page.
func (b *tab) text() string {
	b.Helper()
	return eval[string](b, `document.body.innerText`)
}

// sees waits for a text.
func (b *tab) sees(text string) {
	b.Helper()
	b.until(text+" on the page", func() bool {
		return b.try(`document.body.innerText.replace(/\s+/g, ' ').includes(` + quoted(text) + `)`)
	})
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// finding is a function that finds what a person would use: the first visible one of a kind whose
// name, as a screen reader says it, matches a pattern.
const finding = `((kind, pattern) => {
	const of = {link: 'a[href]', file: 'h3 a[href]', button: 'button,summary,input[type=submit]', field: 'input:not([type=hidden]):not([type=checkbox]):not([type=radio]),textarea,select', box: 'input[type=checkbox],input[type=radio]'};
	const name = e => (e.getAttribute('aria-label') || (e.labels && e.labels.length ? [...e.labels].map(l => l.textContent).join(' ') : '') || e.textContent || e.value || e.title || '').replace(/\s+/g, ' ').trim();
	const scope = [...document.querySelectorAll('dialog[open]')].pop() || document;
	return [...scope.querySelectorAll(of[kind])].find(e => new RegExp(pattern).test(name(e)) && e.checkVisibility({visibilityProperty: true}) && !e.closest('[hidden]'));
})`

func find(kind, pattern string) string {
	return finding + `(` + quoted(kind) + `,` + quoted(pattern) + `)`
}

// at waits for something and brings it into view.
func (b *tab) at(kind, pattern string) string {
	b.Helper()
	b.until(kind+" "+pattern, func() bool { return b.has(kind, pattern) })
	return find(kind, pattern)
}

// has says whether there is something now.
func (b *tab) has(kind, pattern string) bool { return b.try(find(kind, pattern)) }

// goTo moves the focus to something, by the tab key, or the pointer over it.
func (b *tab) goTo(kind, pattern string) (x, y float64) {
	b.Helper()
	e := b.at(kind, pattern)
	if b.keyboard {
		next := kb.Tab
		for range 600 {
			if eval[bool](b, `document.activeElement === `+e) {
				require.True(b, eval[bool](b, `(s => s.outlineStyle !== 'none' || s.boxShadow !== 'none' || document.activeElement.tagName === 'INPUT')(getComputedStyle(document.activeElement))`), "the focus on %s %s cannot be seen", kind, pattern)
				return 0, 0
			}
			if kind == "box" && eval[bool](b, `document.activeElement.type === 'radio' && document.activeElement.name === `+e+`.name`) {
				next = kb.ArrowDown // through the choices of a group, of which tab reaches one
			}
			b.key(next)
		}
		require.Fail(b, "the keyboard does not reach the "+kind+" "+pattern)
	}
	// Where it is, once that is still the same a moment later, and nothing covers it.
	const place = `((e, block) => { e.scrollIntoView({block, behavior: 'instant'}); const r = e.getClientRects()[0] || e.getBoundingClientRect();
		const x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y); return top && (e.contains(top) || top.contains(e)) ? [x, y] : []; })`
	var at, before []float64
	b.until("page that stands still, with nothing above the "+kind+" "+pattern, func() bool {
		before = at
		if !b.try(`document.readyState === 'complete'`) || !b.has(kind, pattern) {
			return false
		}
		if at = eval[[]float64](b, place+`(`+e+`, 'nearest')`); len(at) == 0 {
			at = eval[[]float64](b, place+`(`+e+`, 'center')`)
		}
		return len(at) > 0 && slices.Equal(at, before)
	})
	return at[0], at[1]
}

func (b *tab) key(key string) {
	b.Helper()
	b.do(chromedp.KeyEvent(key))
}

// use follows a link, presses a button, or turns a box on or off.
func (b *tab) use(kind, pattern string) {
	b.Helper()
	x, y := b.goTo(kind, pattern)
	switch {
	case b.keyboard && kind == "box":
		if !eval[bool](b, `document.activeElement.type === 'radio'`) { // which the arrows have chosen
			b.key(" ")
		}
	case b.keyboard:
		b.key(kb.Enter)
	default:
		b.do(chromedp.MouseClickXY(x, y))
	}
}

// goes is use of what leads to another page.
func (b *tab) goes(kind, pattern string) {
	b.Helper()
	eval[bool](b, `window.decreeWasHere = true`)
	b.use(kind, pattern)
	b.until("another page", func() bool { return b.try(`!window.decreeWasHere && document.readyState === 'complete'`) })
}

// fill writes into a field.
func (b *tab) fill(pattern, text string) {
	b.Helper()
	b.use0("field", pattern)
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	call(b, input.InsertText, input.InsertTextParams{Text: text})
}

// use0 only gives the focus.
func (b *tab) use0(kind, pattern string) {
	b.Helper()
	x, y := b.goTo(kind, pattern)
	if !b.keyboard {
		b.do(chromedp.MouseClickXY(x, y))
	}
}

// visit opens a page below the site's.
func (b *tab) visit(path string) {
	b.Helper()
	base := eval[string](b, `location.origin + '/' + location.pathname.split('/')[1]`)
	b.do(chromedp.Navigate(base + path))
	b.settled()
}

// looked looks at the page as it is now: by axe in light and dark, for sideways scrolling at 320 pixels, and by
// pictures under this name.
func (b *tab) looked(name string) {
	b.Helper()
	for _, scheme := range []string{"dark", "light"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		b.axe(name + ", " + scheme)
		b.picture(name+"-1280-"+scheme, 1280)
	}
	b.picture(name+"-360", 360)
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	b.size(320, 800)
	wide := eval[string](b, `(() => { const w = document.documentElement.clientWidth; if (document.documentElement.scrollWidth <= w) return '';
		return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > w + 1 && ![...(function*(p) { for (p = p.parentElement; p && p !== document.body; p = p.parentElement) yield p })(e)].some(p => getComputedStyle(p).overflowX !== 'visible')).slice(0, 5).map(e => e.tagName + '.' + e.className).join(' '); })()`)
	require.Empty(b, wide, "%s: at 320 pixels one has to scroll sideways", name)
	b.size(1280, 900)
}

var axeSource = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile(axeFile)
	return string(data), err
})

// axe runs axe-core in a world of its own, so that the page's policy is not concerned.
func (b *tab) axe(what string) {
	b.Helper()
	if axeFile == "" {
		return
	}
	source, err := axeSource()
	require.NoError(b, err)
	var found struct {
		Violations []struct {
			ID, Help string
			Nodes    []struct{ HTML, FailureSummary string }
		}
	}
	yes := true
	if !b.script { // its own timers need it
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
		defer call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}
	frame := call(b, page.GetFrameTree, cdp.Empty{}).FrameTree.Frame
	world := call(b, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame.ID, WorldName: "axe"}).ExecutionContextID
	res := call(b, runtime.Evaluate, runtime.EvaluateParams{
		Expression: source + `;axe.run(document, {resultTypes: ['violations']})`, ContextID: world, AwaitPromise: &yes, ReturnByValue: &yes,
	})
	require.Nil(b, res.ExceptionDetails, "%s: axe", what)
	require.NoError(b, json.Unmarshal(res.Result.Value, &found))
	for _, v := range found.Violations {
		for _, n := range v.Nodes {
			b.Errorf("%s: axe: %s (%s)\n%s\n%s", what, v.Help, v.ID, n.HTML, n.FailureSummary)
		}
	}
}

var unsafeName = regexp.MustCompile(`[^a-z0-9-]+`)

func (b *tab) picture(name string, width int64) {
	b.Helper()
	if shots == "" || b.keyboard || !b.script {
		return
	}
	b.size(width, 900)
	data := get(b, chromedp.FullScreenshot(100))
	require.NoError(b, os.MkdirAll(shots, 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(shots, unsafeName.ReplaceAllString(strings.ToLower(name), "-")+".png"), data, 0o644))
	b.size(1280, 900)
}

// failure keeps a picture of the page on which a test has failed.
func (b *tab) failure() {
	if shots == "" {
		return
	}
	ctx, end := context.WithTimeout(b.ctx, patience)
	defer end()
	if data, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)); err == nil && os.MkdirAll(shots, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(shots, "failed-"+unsafeName.ReplaceAllString(strings.ToLower(b.Name()), "-")+".png"), data, 0o644)
	}
}
