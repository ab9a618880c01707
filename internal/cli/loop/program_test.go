package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/cli/env"
	loopcmd "github.com/perdure/perdure/internal/cli/loop"
	settings "github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/worker"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	testenv.HideRunners()
	goleak.VerifyTestMain(m)
}

// check is a completion command: each file in tests/ is a test of that name, which
// passes if it contains "pass".
const check = `n=0; bad=0
for f in tests/*; do [ -e "$f" ] || continue; n=$((n+1)); t=$(basename "$f")
case "$(cat "$f")" in pass*) echo "ok $n - $t";; *) echo "not ok $n - $t"; bad=1;; esac
done; echo "1..$n"; exit $bad`

// crew returns agents whose turns are a function of the folder and the turn's number.
type crew struct {
	turn  func(dir string, n int) error
	turns int
}

func (c *crew) Agent(spec loop.AgentSpec) (agent.Agent, error) {
	if spec.Name == "nobody" {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: "there is no agent \"nobody\""}
	}
	return c, nil
}

func (c *crew) Run(_ context.Context, t *agent.Turn) (*agent.Result, error) {
	c.turns++
	return &agent.Result{Text: "done"}, c.turn(t.Dir, c.turns)
}

// program runs the commands of loops with a server that listens on a socket, and keeps
// their output.
type program struct {
	*testing.T
	env.Process
	dir      string // the workspace
	settings string // the folder of the settings file
	store    *perdure.Store
	client   *client.Client
	engine   *loop.Engine
	session  *perdure.Session

	out, errs *screen
}

// screen collects the output of several goroutines.
type screen struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// take returns the output since the last call.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	s.text.Reset()
	return text
}

func newProgram(t *testing.T, turn func(dir string, n int) error) *program {
	t.Helper()
	p := &program{T: t, dir: t.TempDir(), settings: t.TempDir(), out: new(screen), errs: new(screen),
		store: testdb.Open(t, perdure.Config{Dir: t.TempDir()})}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	p.engine, err = loop.New(t.Context(), loop.EngineConfig{Store: p.store, Agents: &crew{turn: turn},
		Dir: filepath.Join(t.TempDir(), "loops")})
	must(err)
	p.session, err = p.store.OpenSession(t.Context(), "test")
	must(err)
	t.Cleanup(func() {
		if err := p.session.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	p.client = p.serve()
	p.write("tests/a", "pass")
	p.write("tests/b", "fail")
	p.Process = env.Process{Stdout: p.out, Stderr: p.errs, Cwd: p.dir, Environ: []string{"PERDURE_DIR=" + p.settings,
		"PERDURE_TRUST=1", "PERDURE_LOOP_APPROVER=any"},
		Opener: func(_ context.Context, l *settings.Loaded, why env.Purpose) (*env.Backend, error) {
			b := &env.Backend{Client: p.client, Config: l}
			if why == env.Execute {
				b.Local = p
			}
			return b, nil
		}}
	p.set(nil)
	return p
}

// set writes the settings of loops: those of all tests and the given ones.
func (p *program) set(given map[string]any) {
	p.Helper()
	loop := map[string]any{"agent": "settled", "max_iterations": 7, "timeout": "1m", "idle_timeout": "2m",
		"check_timeout": "3m", "max_retries": 4, "quality_threshold": 5}
	maps.Copy(loop, given)
	text, err := json.Marshal(map[string]any{"loop": loop}) // JSON is YAML
	if err := errors.Join(err, os.WriteFile(filepath.Join(p.settings, "config.yaml"), text, 0o600)); err != nil {
		p.Fatal(err)
	}
}

// terminal makes all streams terminals.
func terminal(any) (int, bool) { return 100, true }

// SessionID returns the session in which loops run.
func (p *program) SessionID() string { return p.session.ID() }

// GateToken returns none.
func (p *program) GateToken(context.Context, perdure.TreeID, int) string { return "" }

// Own does nothing: all loops run here.
func (p *program) Own(...perdure.TreeID) {}

// Check accepts all loops.
func (p *program) Check(context.Context, *perdure.Tree) error { return nil }

// Work executes loops until ctx ends.
func (p *program) Work(ctx context.Context) error {
	w, err := worker.New(worker.Config{Store: p.store, Session: p.session,
		Handlers: map[string]worker.Handler{perdure.KindLoop: p.engine}, DrainTimeout: -1})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// Launch creates a loop for the server.
func (p *program) Launch(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	cfg, err := config.Parse(req.Config)
	if err != nil {
		return perdure.Tree{}, err
	}
	return p.engine.Launch(ctx, loop.LaunchRequest{Config: cfg, Owner: req.Owner})
}

// Estimate does not exist for loops.
func (p *program) Replay(context.Context, perdure.TreeID) (rlm.Replay, error) {
	return rlm.Replay{}, errors.New("nothing is replayed here")
}

func (p *program) Estimate(context.Context, server.LaunchRequest) (rlm.Estimate, error) {
	return rlm.Estimate{}, errors.ErrUnsupported
}

// Resume does not exist for loops.
func (p *program) Resume(context.Context, server.ResumeRequest) (perdure.RecoverReport, error) {
	return perdure.RecoverReport{}, errors.ErrUnsupported
}

func (p *program) serve() *client.Client {
	p.Helper()
	dir, err := os.MkdirTemp("", "pd") // short: sockets have short paths
	if err != nil {
		p.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		p.Fatal(err)
	}
	srv := &http.Server{Handler: server.New(server.Config{Store: p.store, Launcher: p, Session: p.session,
		ResumeLoop: p.engine.Resume})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(l) }()
	c, err := client.New(client.Config{Socket: filepath.Join(dir, "s")})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		c.Close()
		_ = srv.Close()
		<-ended
		_ = os.RemoveAll(dir)
	})
	return c
}

func (p *program) write(name, text string) {
	p.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		p.Fatal(err)
	}
}

// do runs a command.
func (p *program) do(args ...string) error {
	p.Helper()
	cmd := loopcmd.Command(env.New(p.Process))
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(p.Context())
}

// ok runs a command that has to succeed.
func (p *program) ok(args ...string) {
	p.Helper()
	if err := p.do(args...); err != nil {
		p.Fatalf("%v: %v\n%s", args, err, p.errs.take())
	}
}

// ends runs a command that has to end with this exit status.
func (p *program) ends(status int, args ...string) {
	p.Helper()
	if err := p.do(args...); env.StatusOf(err) != status {
		p.Fatalf("%v: %v, exit status %d, want %d\n%s", args, err, env.StatusOf(err), status, p.errs.take())
	}
}

// refuses runs a command that has to fail with these words.
func (p *program) refuses(code perdure.Code, words string, args ...string) {
	p.Helper()
	err := p.do(args...)
	if err == nil || code != "" && perdure.CodeOf(err) != code || !strings.Contains(err.Error()+" "+perdure.HintOf(err),
		words) {
		p.Errorf("%v: %v (%s), want %q", args, err, perdure.HintOf(err), words)
	}
}

// says checks that standard error contains words.
func (p *program) says(words ...string) {
	p.Helper()
	text := p.errs.take()
	for _, w := range words {
		if !strings.Contains(text, w) {
			p.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

// last returns the newest loop and its configuration.
func (p *program) last() (record.Loop, config.Config) {
	p.Helper()
	list, err := p.client.Loops(p.Context(), 1)
	if err != nil || len(list) != 1 {
		p.Fatalf("loops: %+v, %v", list, err)
	}
	tree, err := p.client.Tree(p.Context(), list[0].Tree)
	if err != nil {
		p.Fatal(err)
	}
	cfg, err := config.Of(&tree, &list[0])
	if err != nil {
		p.Fatal(err)
	}
	return list[0], cfg
}
