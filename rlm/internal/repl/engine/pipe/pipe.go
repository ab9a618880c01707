// Package pipe runs an engine in a confined process of its own, which it talks to by frames on
// the standard streams of the process.
//
// A frame is four bytes of length, big-endian, and that many bytes of JSON. The host sends
// init, exec, reply and set; the process answers with ready, request, done and ok.
package pipe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// Config describes the process of an engine.
type Config struct {
	// Command starts it: its standard streams are set by Start.
	Command guard.Config
	// Contents and Limits are those of the session.
	Contents engine.Contents
	Limits   engine.Limits
	// Tools are the names of the tools of the user.
	Tools []string
	// Folder is the scratch folder, which has a limit; empty: there is none.
	Folder string
	// LazyBytes is the size of a context from which it is read in parts.
	LazyBytes int64
	// KeepNames is that of the session's configuration.
	KeepNames bool
	// Reference is that of the session's configuration.
	Reference *engine.Reference
	// Attempts are what the process must not be able to do. It tries each before any code runs;
	// if one works, the process is ended, and the error of Start is a [*sandbox.Error].
	Attempts []Attempt
	// Closed, when set, is called when the process of a session has ended.
	Closed func() error
}

// session is a running process.
type session struct {
	cfg    Config
	proc   *guard.Process
	input  *os.File
	output *bufio.Reader
	from   *os.File
	ended  chan struct{} // closed when the process has ended
	exit   error         // why; read after ended
	checks []string      // what the process could not do
	said   *errorText    // what it wrote to its standard error; read after ended

	mu     sync.Mutex
	killed string        // the kind of the error, if the host ended the process
	began  time.Duration // the processor time of the process when the block began
	once   sync.Once
}

// Start starts the process and waits until it is ready.
func Start(ctx context.Context, cfg Config) (engine.Session, error) {
	cfg.Limits = withDefaults(cfg.Limits)
	toR, toW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromR, fromW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, toR.Close(), toW.Close())
	}
	said := new(errorText)
	cfg.Command.Stdin, cfg.Command.Stdout, cfg.Command.Stderr, cfg.Command.Grace = toR, fromW, said, -1
	s := &session{cfg: cfg, said: said, input: toW, from: fromR, output: bufio.NewReaderSize(fromR, 64<<10),
		ended: make(chan struct{})}
	s.proc, err = guard.Start(context.WithoutCancel(ctx), cfg.Command)
	err = errors.Join(err, toR.Close(), fromW.Close())
	if err != nil {
		if s.proc != nil {
			s.proc.Kill()
			_ = s.proc.Wait()
		}
		if err = errors.Join(err, toW.Close(), fromR.Close()); Killed(err) {
			err = &engine.Error{Kind: engine.KindKilled, Err: err, Msg: "the engine ended while it started"}
		}
		return nil, err
	}
	go func() {
		s.exit = s.proc.Wait()
		close(s.ended)
	}()
	if cfg.Folder != "" {
		go s.watchFolder()
	}
	if !slices.Contains(s.proc.Layers(), sandbox.LayerNamespaces) {
		s.cfg.Limits.Processes = processesBeside(cfg.Limits.Processes)
	}
	if err := s.begin(ctx); err != nil {
		s.cfg.Closed = nil // the caller has the error
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// begin waits until the process is ready, and checks what it could do.
func (s *session) begin(ctx context.Context) error {
	init := s.cfg.init()
	if slices.Contains(s.proc.Layers(), sandbox.LayerNamespaces) {
		init.Work = ownWork
	}
	a, err := s.exchange(ctx, init, "ready")
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Kind == engine.KindKilled {
		return s.notBegun(e)
	}
	if err != nil {
		return err
	}
	layers := s.proc.Layers()
	if s.checks, err = judge(s.cfg.Attempts, a.Outcomes, layers); err != nil {
		return err
	}
	return measured(layers, memoryOf(s.proc.Pid()))
}

// notBegun returns the error of a process that ended before it was ready, with the last line that it
// wrote. sandbox-exec and a process that its profile does not let start end in this way, too.
func (s *session) notBegun(e *engine.Error) error {
	e.Msg = "the engine ended while it started"
	if line := s.said.lastLine(); line != "" {
		e.Msg += " (" + line + ")"
	}
	if slices.Contains(s.proc.Layers(), sandbox.LayerSandboxExec) {
		return &sandbox.Error{Op: "start in sandbox", Err: e}
	}
	return e
}

// ownWork is the working folder in a /tmp of its own, which a process has in namespaces: paths
// that the code prints are the same when it runs again.
const ownWork = "/tmp/work"

// Killed reports whether a process did not end by itself: another one has killed it or its
// guard.
func Killed(err error) bool {
	e, ok := errors.AsType[*guard.ExitError](err)
	return errors.Is(err, guard.ErrGuardLost) || ok && e.Signal != ""
}

func withDefaults(l engine.Limits) engine.Limits {
	set := func(v *int64, to int64) {
		if *v == 0 {
			*v = to
		}
	}
	set(&l.MemoryBytes, 1<<30)
	set(&l.FileBytes, 256<<20)
	set(&l.FolderBytes, 2<<30)
	if l.CPU == 0 {
		l.CPU = time.Minute
	}
	if l.Wait == 0 {
		l.Wait = 10 * time.Minute
	}
	if l.Processes == 0 {
		l.Processes = 16
	}
	return l
}

func (c *Config) init() *Message {
	return &Message{Type: "init", Contents: &Contents{c.Contents.Text, c.Contents.Files}, Tools: c.Tools,
		LazyBytes: c.LazyBytes, KeepNames: c.KeepNames, MaxOutput: engine.MaxOutputBytes, MaxVar: engine.MaxVarBytes,
		MaxRequest: engine.MaxRequestBytes, MaxAnswer: engine.MaxAnswerBytes, MemoryBytes: c.Limits.MemoryBytes,
		FileBytes: c.Limits.FileBytes, CPUSeconds: int64(c.Limits.CPU / time.Second), Processes: c.Limits.Processes,
		Attempts: c.Attempts, Reference: c.Reference}
}

// Sandbox is that of the process.
func (s *session) Sandbox() engine.Sandbox {
	return engine.Sandbox{Layers: s.proc.Layers(), Checks: s.checks}
}

// Exec runs a block.
func (s *session) Exec(ctx context.Context, b engine.Block) (engine.Event, error) {
	return s.event(ctx, &Message{Type: "exec", Code: b.Code, Clock: b.Clock.UnixMicro(), Seed: b.Seed,
		History: b.History})
}

// Reply answers a request.
func (s *session) Reply(ctx context.Context, r engine.Reply) (engine.Event, error) {
	m := &Message{Type: "reply", Value: r.Value, Err: r.Err}
	if !r.Clock.IsZero() {
		m.Clock = r.Clock.UnixMicro()
	}
	return s.event(ctx, m)
}

// Set sets variables.
func (s *session) Set(ctx context.Context, vars []engine.Var) error {
	m := &Message{Type: "set"}
	for _, v := range vars {
		m.Vars = append(m.Vars, Variable{v.Name, v.Value})
	}
	_, err := s.exchange(ctx, m, "ok")
	return err
}

func (s *session) event(ctx context.Context, m *Message) (engine.Event, error) {
	a, err := s.exchange(ctx, m, "request", "done")
	if err != nil {
		return engine.Event{}, err
	}
	if a.Type == "request" {
		return engine.Event{Request: &engine.Request{Function: a.Function, Args: a.Args}}, nil
	}
	if a.Done == nil {
		return engine.Event{}, s.broken(errors.New("a block ended without its end"))
	}
	return engine.Event{Done: a.Done.end()}, nil
}

// end returns the end of a block as engines have it.
func (d *End) end() *engine.Done {
	out := &engine.Done{Output: d.Output, OutputBytes: d.OutputBytes, OutputSHA256: d.OutputSHA256, Failure: d.Failure,
		Draft: d.Draft, Gone: d.Gone, Errors: d.Errors}
	if f := d.Final; f != nil {
		out.Final = &engine.Final{Value: json.RawMessage(f.JSON), Text: f.Text, By: f.By}
		if !json.Valid(out.Final.Value) {
			out.Final.Value = nil
		}
	}
	for _, v := range d.Vars {
		one := v.Var
		if v.JSON != nil && json.Valid([]byte(*v.JSON)) {
			one.Value = json.RawMessage(*v.JSON)
		}
		out.Vars = append(out.Vars, one)
	}
	return out
}

// exchange sends a message and returns the answer, which has one of the types.
func (s *session) exchange(ctx context.Context, m *Message, types ...string) (*Answer, error) {
	stop := context.AfterFunc(ctx, func() { s.kill("") })
	defer stop()
	defer s.watch(m.Type == "exec")()
	a, err := s.roundTrip(m)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, s.lost(err)
	}
	for _, t := range types {
		if a.Type == t {
			return a, nil
		}
	}
	return nil, s.broken(fmt.Errorf("a frame of type %q, not of %q", a.Type, types))
}

// The process stops code at its limit of processor time itself. Code that turned that off is
// stopped by the host, which reads the use every watchEvery, somewhat later, and so is code that
// waits for too long: also for a program that it started, whose processor time does not count
// before its end.
const watchSlack = 3 * time.Second

// exceeded returns the kind of the error if a process uses more than its limits, "" if it does not.
// Memory counts where the process has no limit of its own.
func exceeded(used, mostTime time.Duration, memory, mostMemory int64) string {
	switch {
	case mostMemory > 0 && memory > mostMemory:
		return engine.KindMemory
	case used > mostTime:
		return engine.KindCPU
	}
	return ""
}

// watch ends the process if a block uses more processor time or memory than its limit, or does not
// answer for too long, until the returned function is called. begins is set if a block begins.
func (s *session) watch(begins bool) (stop func()) {
	s.mu.Lock()
	if begins {
		s.began = processorTime(s.proc.Pid())
	}
	limit := s.cfg.Limits.CPU
	most, began := s.began+limit+min(limit, watchSlack), time.Now()
	s.mu.Unlock()
	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		pid := s.proc.Pid()
		kind := exceeded(processorTime(pid), most, memoryOf(pid), s.cfg.Limits.MemoryBytes)
		if kind == "" && time.Since(began) > s.cfg.Limits.Wait {
			kind = engine.KindTime
		}
		if kind != "" {
			s.kill(kind)
			return
		}
		timer.Reset(watchEvery)
	}
	mu.Lock()
	timer = time.AfterFunc(watchEvery, look)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

func (s *session) roundTrip(m *Message) (*Answer, error) {
	if err := writeFrame(s.input, m); err != nil {
		return nil, err
	}
	a := new(Answer)
	return a, readFrame(s.output, a)
}

// broken ends the process because of what it sent.
func (s *session) broken(cause error) error {
	s.kill(engine.KindProtocol)
	return &engine.Error{Kind: engine.KindProtocol, Err: cause, Msg: "the engine does not keep to its protocol",
		Hint: "the code has interfered with it"}
}

// lost returns why the process does not answer.
func (s *session) lost(cause error) error {
	if errors.Is(cause, errFrame) {
		return s.broken(cause)
	}
	s.kill("")
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	return ended(s.killed, s.cfg.Limits, s.exit)
}

// ended returns the error of a process that ended; kind says why, if the host ended it because of a
// limit.
func ended(kind string, l engine.Limits, exit error) *engine.Error {
	switch kind {
	case engine.KindCPU:
		return &engine.Error{Kind: kind, Msg: fmt.Sprintf("a block used more than %s of processor time", l.CPU)}
	case engine.KindMemory:
		return &engine.Error{Kind: kind, Msg: fmt.Sprintf("the code used more than %d MiB of memory", l.MemoryBytes>>20)}
	case engine.KindTime:
		return &engine.Error{Kind: kind, Msg: fmt.Sprintf("a block took longer than %s between two requests", l.Wait)}
	case engine.KindFiles:
		return &engine.Error{Kind: kind, Msg: fmt.Sprintf("the code wrote more than %d MiB of files", l.FolderBytes>>20)}
	}
	return &engine.Error{Kind: engine.KindKilled, Msg: "the engine ended while it ran code", Err: exit}
}

// kill ends the process. kind says why, if the host ends it because of a limit.
func (s *session) kill(kind string) {
	s.mu.Lock()
	if s.killed == "" {
		s.killed = kind
	}
	s.mu.Unlock()
	s.proc.Kill()
}

// Close ends the process.
func (s *session) Close() (err error) {
	s.once.Do(func() {
		s.proc.Kill()
		<-s.ended
		err = errors.Join(s.input.Close(), s.from.Close())
		if s.cfg.Closed != nil {
			err = errors.Join(err, s.cfg.Closed())
		}
	})
	return err
}
