package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/notify"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
)

// mailbox collects the requests that it receives.
type mailbox struct {
	mu  sync.Mutex // guards got
	got []notify.Notice
	// came, when set, receives them too.
	came chan notify.Notice
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n notify.Notice
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &n)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, n)
	if m.came != nil {
		m.came <- n
	}
}

func (m *mailbox) events() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var words []string
	for _, n := range m.got {
		words = append(words, string(n.Event)+" "+n.ID[strings.IndexByte(n.ID, '/'):])
	}
	return strings.Join(words, ", ")
}

// until waits for an event of the loop.
func until(t *testing.T, c *client.Client, id perdure.TreeID, kind perdure.EventKind) {
	t.Helper()
	for e, err := range c.Events(t.Context(), 0, id) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == kind {
			return
		}
	}
}

// A loop sends notifications about gates, pauses and its end. A command and a webhook
// receive the same; a failed one is reported and does not delay the loop.
func TestNotices(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the agent is a Unix shell")
	}
	box := &mailbox{came: make(chan notify.Notice, 10)}
	s := httptest.NewServer(box)
	defer s.Close()
	dir, project := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"a": "pass", "b": "fail"} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, daemon.Config{Dir: dir, Session: "run", HookDir: project, Notify: daemon.NotifyConfig{Webhook: s.URL,
		Command: `cat >> told; echo >> told; env >> environment; test "$PERDURE_EVENT" != loop_complete`}})
	c := local(t, d)
	work(t, d)
	tree := startLoop(t, d, c, config.Config{Task: "Fix b", Workspace: project, Agent: "exec:rm a",
		Approver: perdure.ApproverToken, Until: `n=0
for f in a b; do test -e $f || continue; n=$((n+1)); grep -q pass $f && echo "ok $n - $f" || echo "not ok $n - $f"; done
echo "1..$n"; exit 1`})
	until(t, c, tree.ID, perdure.EventLoopGateOpened)
	token := (<-box.came).Gate.Token
	answer := func(token string) error {
		_, err := c.AnswerGate(t.Context(), tree.ID, 1, perdure.GateDecision{Answer: "abort", Token: token})
		return err
	}
	for _, wrong := range []string{"", perdure.NewGateToken(), token[1:]} {
		if err := answer(wrong); perdure.CodeOf(err) != perdure.CodeConflict || !strings.Contains(err.Error(), "token") {
			t.Errorf("the token %q: %v", wrong, err)
		}
	}
	if err := answer(strings.ToUpper(strings.ReplaceAll(token, "-", ""))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitTree(t.Context(), tree.ID); err != nil {
		t.Fatal(err)
	}
	if got, want := box.events(), "gate_opened /gate/1, loop_complete /ended/1"; got != want {
		t.Fatalf("told %q, want %q", got, want)
	}
	id := loop.ID(&tree)
	g := box.got[0]
	if !strings.HasPrefix(g.Title, id+" asks: regression in iteration 1") || g.Folder != project ||
		g.Gate.Kind != "recovery" ||
		!strings.Contains(g.Text, "perdure loop answer reject --loop "+id+" --token -: ") {
		t.Errorf("the gate is told as %+v", g)
	}
	want := notify.Option{Answer: "abort", Effect: "the loop ends; the files are not changed",
		Command: "perdure loop answer abort --loop " + id + " --token -"}
	if last := g.Gate.Options[len(g.Gate.Options)-1]; last != want {
		t.Error(cmp.Diff(want, last))
	}
	if n := box.got[1]; n.Status != "aborted" || !strings.Contains(n.Text, "perdure loop report "+id) {
		t.Errorf("the end is told as %+v", n)
	}
	told, err := os.ReadFile(filepath.Join(project, "told"))
	if err != nil || strings.Count(string(told), `"loop_id":"`+id) != 2 {
		t.Errorf("the command was told %s, %v", told, err)
	}
	if !strings.Contains(string(told), `"token":"`+token) || !strings.Contains(g.Text, "\ntoken: "+token) {
		t.Errorf("the notices do not have the token: %s, %s", told, g.Text)
	}
	if env, err := os.ReadFile(filepath.Join(project, "environment")); err != nil || len(env) == 0 ||
		strings.Contains(string(env), token) {
		t.Errorf("the environment of the command has the token: %v", err)
	}
	unfound(t, dir, token)
	until(t, c, tree.ID, loop.EventWarning) // of the command, which failed in the end
}

// One notification is sent about the gate of a run, however many tasks wait there, with the
// commands of the answers; a failed notifier does not stop the others.
func TestNoticeOfARun(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the command is a Unix shell's")
	}
	box := &mailbox{}
	s := httptest.NewServer(box)
	defer s.Close()
	d := open(t, daemon.Config{Session: "run", Notify: daemon.NotifyConfig{Command: "exit 1", Webhook: s.URL}})
	c := local(t, d)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Work(ctx) }()
	cfg := json.RawMessage(`{"model":"mock:status=500,mock:status=500","samples":3,"merge":"vote","call_retries":0,` +
		`"max_attempts":1}`)
	tree, err := c.CreateTree(t.Context(), client.TreeRequest{Prompt: "x", Config: cfg, Owner: d.SessionID()})
	if err != nil {
		t.Fatal(err)
	}
	d.Own(tree.ID)
	until(t, c, tree.ID, perdure.EventGateOpened)
	stop() // the notification was sent when this returns
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got, want := box.events(), "gate_opened /gate/1"; got != want {
		t.Fatalf("told %q, want %q", got, want)
	}
	id, n := string(tree.ID), box.got[0]
	if n.Loop != "" || n.Tree != id || !strings.HasPrefix(n.Title, id+" asks: all models of the chain failed") ||
		n.Gate.Kind != "reassignment" ||
		!strings.Contains(n.Text, "perdure answer "+id+" retry: ") || len(n.Gate.Options) != 4 ||
		n.Gate.Options[2].Command != "perdure answer "+id+" skip" {
		t.Errorf("the gate is told as %+v", n)
	}
}

// A notification is sent for a loop that cannot continue, not for one that the user paused.
func TestNoticeOfAPause(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the agent is a Unix shell")
	}
	box := &mailbox{}
	s := httptest.NewServer(box)
	defer s.Close()
	d := open(t, daemon.Config{Session: "run", Notify: daemon.NotifyConfig{Webhook: s.URL}})
	c := local(t, d)
	work(t, d)
	tree := startLoop(t, d, c, config.Config{Task: "x", Workspace: t.TempDir(), Agent: "exec:true",
		Until: "no-such-check"})
	until(t, c, tree.ID, loop.EventPaused)
	if got, want := box.events(), "loop_paused /paused/0"; got != want {
		t.Fatalf("told %q, want %q", got, want)
	}
	if n := box.got[0]; n.Status != "paused" || !strings.Contains(n.Title, "the completion command cannot be run") ||
		!strings.Contains(n.Text, "perdure loop resume") {
		t.Errorf("told as %+v", n)
	}
}

// A notice on the terminal of the process contains no control characters of an agent, which
// could change what the terminal shows of the gate and its token.
func TestNoticeOnTerminal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the agent is a Unix shell")
	}
	shown := make(screen, 1)
	d := open(t, daemon.Config{Session: "run", Notify: daemon.NotifyConfig{Terminal: shown}})
	c := local(t, d)
	work(t, d)
	asks := `printf 'Which file should I \033]0;title\007\302\233\342\200\256 change?\n'`
	startLoop(t, d, c, config.Config{Task: "x", Workspace: t.TempDir(), Agent: "exec:" + asks, Until: "false",
		Approver: perdure.ApproverToken})
	text := <-shown
	if !strings.Contains(text, "the agent asks: Which file should I ") || !strings.Contains(text, "\ntoken: ") ||
		strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && (unicode.IsControl(c) || c == '\u202e') }) {
		t.Errorf("the terminal receives %q", text)
	}
}

// startLoop creates a loop that the daemon works on.
func startLoop(t *testing.T, d *daemon.Daemon, c *client.Client, cfg config.Config) perdure.Tree {
	t.Helper()
	data, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := c.CreateTree(t.Context(), client.TreeRequest{Kind: perdure.KindLoop, Prompt: cfg.Task, Config: data,
		Owner: d.SessionID()})
	if err != nil {
		t.Fatal(err)
	}
	d.Own(tree.ID)
	return tree
}

// screen sends what is written to it, up to its capacity, and discards the rest.
type screen chan string

func (s screen) Write(p []byte) (int, error) {
	select {
	case s <- string(p):
	default:
	}
	return len(p), nil
}

// unfound checks that no file of a folder contains a token.
func unfound(t *testing.T, dir, token string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		raw, err := os.ReadFile(name)
		if bytes.Contains(raw, []byte(token)) || bytes.Contains(raw, []byte(strings.ReplaceAll(token, "-", ""))) {
			t.Errorf("%s contains the token", name)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files read: %v", files, err)
	}
}
