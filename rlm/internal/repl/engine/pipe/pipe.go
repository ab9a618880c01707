// Package pipe runs an engine in a process of its own, which it talks to by frames on the
// standard streams of the process.
//
// A frame is four bytes of length, big-endian, and that many bytes of JSON. The host sends
// init, exec, reply and set; the process answers with ready, request, done and ok.
package pipe

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// LazyBytes is the size of a context from which it is read in parts.
	LazyBytes int64
	// Closed, when set, is called when the process of a session has ended.
	Closed func() error
}

// MaxFrameBytes is the longest frame: a request, or the end of a block with its output and the
// values of its variables.
const MaxFrameBytes = engine.MaxRequestBytes + 16<<20

// session is a running process.
type session struct {
	cfg    Config
	proc   *guard.Process
	input  *os.File
	output *bufio.Reader
	from   *os.File
	ended  chan struct{} // closed when the process has ended
	exit   error         // why; read after ended

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
	cfg.Command.Stdin, cfg.Command.Stdout, cfg.Command.Grace = toR, fromW, -1
	s := &session{cfg: cfg, input: toW, from: fromR, output: bufio.NewReaderSize(fromR, 64<<10),
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
	if !slices.Contains(s.Layers(), sandbox.LayerNamespaces) {
		s.cfg.Limits.Processes = processesBeside(cfg.Limits.Processes)
	}
	if _, err := s.exchange(ctx, s.cfg.init(), "ready"); err != nil {
		s.cfg.Closed = nil // the caller has the error
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

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
	if l.CPU == 0 {
		l.CPU = time.Minute
	}
	if l.Processes == 0 {
		l.Processes = 16
	}
	return l
}

// message is what the host sends.
type message struct {
	Type  string `json:"type"`
	Code  string `json:"code,omitempty"`
	Clock int64  `json:"clock"` // in microseconds since 1970
	Seed  uint64 `json:"seed"`

	Value json.RawMessage `json:"value,omitempty"`
	Err   string          `json:"err,omitempty"`
	Vars  []variable      `json:"vars,omitempty"`

	Contents    *contents `json:"contents,omitempty"`
	LazyBytes   int64     `json:"lazy_bytes,omitempty"`
	MaxOutput   int       `json:"max_output,omitempty"`
	MaxVar      int       `json:"max_var,omitempty"`
	MemoryBytes int64     `json:"memory_bytes,omitempty"`
	FileBytes   int64     `json:"file_bytes,omitempty"`
	CPUSeconds  int64     `json:"cpu_seconds,omitempty"`
	Processes   int       `json:"processes,omitempty"`
}

type variable struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

type contents struct {
	Text  *engine.File  `json:"text,omitempty"`
	Files []engine.File `json:"files,omitempty"`
}

func (c *Config) init() *message {
	return &message{Type: "init", Contents: &contents{c.Contents.Text, c.Contents.Files}, LazyBytes: c.LazyBytes,
		MaxOutput: engine.MaxOutputBytes, MaxVar: engine.MaxVarBytes, MemoryBytes: c.Limits.MemoryBytes,
		FileBytes: c.Limits.FileBytes, CPUSeconds: int64(c.Limits.CPU / time.Second), Processes: c.Limits.Processes}
}

// answer is what the process sends.
type answer struct {
	Type     string          `json:"type"`
	Function string          `json:"function"`
	Args     json.RawMessage `json:"args"`
	Done     *done           `json:"done"`
}

// done is the end of a block. Values are strings that hold JSON.
type done struct {
	Output       string          `json:"output"`
	OutputBytes  int64           `json:"output_bytes"`
	OutputSHA256 string          `json:"output_sha256"`
	Failure      *engine.Failure `json:"failure"`
	Draft        string          `json:"draft"`
	Gone         []string        `json:"gone"`
	Final        *struct {
		JSON string `json:"json"`
		Text string `json:"text"`
		By   string `json:"by"`
	} `json:"final"`
	Vars []struct {
		engine.Var
		JSON *string `json:"json"`
	} `json:"vars"`
}

// Layers are those of the sandbox of the process.
func (s *session) Layers() []string { return s.proc.Layers() }

// Exec runs a block.
func (s *session) Exec(ctx context.Context, b engine.Block) (engine.Event, error) {
	return s.event(ctx, &message{Type: "exec", Code: b.Code, Clock: b.Clock.UnixMicro(), Seed: b.Seed})
}

// Reply answers a request.
func (s *session) Reply(ctx context.Context, r engine.Reply) (engine.Event, error) {
	m := &message{Type: "reply", Value: r.Value, Err: r.Err}
	if !r.Clock.IsZero() {
		m.Clock = r.Clock.UnixMicro()
	}
	return s.event(ctx, m)
}

// Set sets variables.
func (s *session) Set(ctx context.Context, vars []engine.Var) error {
	m := &message{Type: "set"}
	for _, v := range vars {
		m.Vars = append(m.Vars, variable{v.Name, v.Value})
	}
	_, err := s.exchange(ctx, m, "ok")
	return err
}

func (s *session) event(ctx context.Context, m *message) (engine.Event, error) {
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
func (d *done) end() *engine.Done {
	out := &engine.Done{Output: d.Output, OutputBytes: d.OutputBytes, OutputSHA256: d.OutputSHA256, Failure: d.Failure,
		Draft: d.Draft, Gone: d.Gone}
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
func (s *session) exchange(ctx context.Context, m *message, types ...string) (*answer, error) {
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
// stopped by the host, somewhat later.
const (
	watchEvery = time.Second
	watchSlack = 3 * time.Second
)

// watch ends the process if a block uses more processor time than its limit, until the
// returned function is called. begins is set if a block begins.
func (s *session) watch(begins bool) (stop func()) {
	s.mu.Lock()
	if begins {
		s.began = processorTime(s.proc.Pid())
	}
	most := s.began + s.cfg.Limits.CPU + watchSlack
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
		if processorTime(s.proc.Pid()) > most {
			s.kill(engine.KindCPU)
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

func (s *session) roundTrip(m *message) (*answer, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, len(raw)+4), uint32(len(raw))) //nolint:gosec // below 4 GiB
	if _, err := s.input.Write(append(frame, raw...)); err != nil {
		return nil, err
	}
	return readFrame(s.output)
}

// errFrame is the cause of an answer that is not of the protocol.
var errFrame = errors.New("not a frame of the protocol")

// readFrame reads one answer of an engine's process.
func readFrame(r io.Reader) (*answer, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxFrameBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errFrame, n, MaxFrameBytes)
	}
	// The bytes are read as they come: a wrong length allocates nothing.
	raw, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(raw) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	a := new(answer)
	if err := json.Unmarshal(raw, a); err != nil {
		return nil, fmt.Errorf("%w: %w", errFrame, err)
	}
	return a, nil
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
	e := &engine.Error{Kind: engine.KindKilled, Msg: "the engine ended while it ran code", Err: s.exit}
	if s.killed == engine.KindCPU {
		e.Kind, e.Err = engine.KindCPU, nil
		e.Msg = fmt.Sprintf("a block used more than %s of processor time", s.cfg.Limits.CPU)
	}
	return e
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
