package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	loopcmd "github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/worker"
)

func TestMain(m *testing.M) {
	guard.Enter()
	goleak.VerifyTestMain(m)
}

// check is a completion command: each file in tests/ is a test of that name, which
// passes when it holds "pass".
const check = `n=0; bad=0
for f in tests/*; do [ -e "$f" ] || continue; n=$((n+1)); t=$(basename "$f")
case "$(cat "$f")" in pass*) echo "ok $n - $t";; *) echo "not ok $n - $t"; bad=1;; esac
done; echo "1..$n"; exit $bad`

// crew are agents of any name whose turns are a function of the folder and of the
// turn's number.
type crew struct {
	turn  func(dir string, n int) error
	turns int
}

func (c *crew) Agent(name string) (agent.Agent, error) {
	if name == "nobody" {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: "there is no agent \"nobody\""}
	}
	return c, nil
}

func (c *crew) Run(_ context.Context, t *agent.Turn) (*agent.Result, error) {
	c.turns++
	return &agent.Result{Text: "done"}, c.turn(t.Dir, c.turns)
}

// program is the commands of loops over a server that listens on a socket, with
// what they print.
type program struct {
	*testing.T
	loopcmd.Config
	dir     string // the workspace
	store   *perdure.Store
	client  *client.Client
	engine  *loop.Engine
	session *perdure.Session
	set     config.Config // what the settings say
	rings   int

	out, errs *screen
}

// screen is what was printed, from any goroutine.
type screen struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// take returns what was printed since it was asked last.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	s.text.Reset()
	return text
}

// ending is how a command ended, by what it is of the program's exit statuses.
type ending struct{ as loopcmd.Ending }

func (e *ending) Error() string { return fmt.Sprintf("ended as %d", e.as) }

func newProgram(t *testing.T, turn func(dir string, n int) error) *program {
	t.Helper()
	p := &program{T: t, dir: t.TempDir(), out: new(screen), errs: new(screen),
		store: testdb.Open(t, perdure.Config{Dir: t.TempDir()}),
		set: config.Config{Agent: "settled", MaxIterations: 7, Timeout: 1, IdleTimeout: 2, CheckTimeout: 3, MaxRetries: 4,
			QualityThreshold: 5, OverheadPercent: 10}}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	p.engine, err = loop.New(loop.EngineConfig{Store: p.store, Agents: &crew{turn: turn},
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
	p.Config = loopcmd.Config{
		Stdin: strings.NewReader(""), Terminal: func() bool { return false }, Out: p.out, Err: p.errs, Width: 100, Cwd: p.dir,
		PrintJSON:   func(v any) error { return json.NewEncoder(p.out).Encode(v) },
		WriteOutput: func(_ string, write func(io.Writer) error) error { return write(p.out) },
		Safe:        func(text string) string { return strings.ReplaceAll(text, "\x1b", "?") },
		Bold:        same, Dim: same, User: func() string { return "ann" }, Arguments: anyArguments, Bell: func() {
			p.rings++
		},
		Ended:    func(as loopcmd.Ending, _, _ string) error { return &ending{as} },
		Settings: func(*cobra.Command, string) (config.Config, error) { return p.set, nil },
		Read:     p.with(false), Execute: p.with(true), Detach: p.with(false),
	}
	return p
}

func same(text string) string { return text }

func anyArguments(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return errors.New("it takes " + what)
		}
		return nil
	}
}

// with gives commands the store, over the socket.
func (p *program) with(execute bool) func(*cobra.Command, func(loopcmd.Store) error) error {
	return func(_ *cobra.Command, do func(loopcmd.Store) error) error {
		s := loopcmd.Store{Client: p.client}
		if execute {
			s.Session, s.Run = p.session.ID(), p.run
		}
		return do(s)
	}
}

// run executes loops until done returns.
func (p *program) run(ctx context.Context, _ perdure.TreeID, done func(context.Context) error) error {
	w, err := worker.New(worker.Config{Store: p.store, Session: p.session,
		Handlers: map[string]worker.Handler{perdure.KindLoop: p.engine}, DrainTimeout: -1})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	err = done(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// Launch is for the server.
func (p *program) Launch(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	cfg, err := config.Parse(req.Config)
	if err != nil {
		return perdure.Tree{}, err
	}
	return p.engine.Launch(ctx, loop.LaunchRequest{Config: cfg, Owner: req.Owner})
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

// do gives a command.
func (p *program) do(args ...string) error {
	p.Helper()
	cmd := loopcmd.Command(p.Config)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(p.Context())
}

// ok gives a command that has to succeed.
func (p *program) ok(args ...string) {
	p.Helper()
	if err := p.do(args...); err != nil {
		p.Fatalf("%v: %v\n%s", args, err, p.errs.take())
	}
}

// ends gives a command that has to end so.
func (p *program) ends(as loopcmd.Ending, args ...string) {
	p.Helper()
	err := p.do(args...)
	var end *ending
	if !errors.As(err, &end) || end.as != as {
		p.Fatalf("%v: %v, want an end as %d\n%s", args, err, as, p.errs.take())
	}
}

// refuses gives a command that has to fail with these words.
func (p *program) refuses(code perdure.Code, words string, args ...string) {
	p.Helper()
	err := p.do(args...)
	if err == nil || code != "" && perdure.CodeOf(err) != code || !strings.Contains(err.Error()+" "+perdure.HintOf(err),
		words) {
		p.Errorf("%v: %v (%s), want %q", args, err, perdure.HintOf(err), words)
	}
}

// says looks for words in what was printed to standard error.
func (p *program) says(words ...string) {
	p.Helper()
	text := p.errs.take()
	for _, w := range words {
		if !strings.Contains(text, w) {
			p.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

// last is the newest loop and what it is to do.
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
