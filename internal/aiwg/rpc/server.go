package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// Config says what a [Server] works with.
type Config struct {
	// Store holds the tasks. Required.
	Store *perdure.Store
	// Execute tells how the daemon itself does the tasks for an agent ("" for
	// none): the configuration and the limits of their trees. False: it cannot,
	// and they wait for a worker. It is called from many goroutines. Nil: it
	// never can.
	Execute func(agent string) (Execution, bool)
	// Concurrency is how many tasks the daemon does at once, to be told.
	Concurrency int
	// MaxLineBytes bounds a line, without its end. 0: DefaultMaxLineBytes.
	MaxLineBytes int
	// MaxConns bounds the connections. 0: DefaultMaxConns.
	MaxConns int
	// WriteTimeout is how long a client may not read. 0: DefaultWriteTimeout.
	WriteTimeout time.Duration
	// Silence is how long a task stays with a worker whose connection ended.
	// 0: DefaultSilence.
	Silence time.Duration
	// DrainTimeout is how long workers may end what they do when the server
	// stops. 0: DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Version is what daemon.status tells.
	Version string
	// Logger: nil discards.
	Logger *slog.Logger
}

// Execution is how the daemon does a task.
type Execution struct {
	Config json.RawMessage
	Limits perdure.Limits
}

func (c Config) withDefaults() Config {
	setDefault(&c.MaxLineBytes, DefaultMaxLineBytes)
	setDefault(&c.MaxConns, DefaultMaxConns)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.Silence, DefaultSilence)
	setDefault(&c.DrainTimeout, DefaultDrainTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Execute == nil {
		c.Execute = func(string) (Execution, bool) { return Execution{}, false }
	}
	return c
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func (c *Config) validate() error {
	var errs []error
	if c.Store == nil {
		errs = append(errs, errors.New("serve .aiwg clients: Store is missing"))
	}
	if c.MaxLineBytes < 0 || c.MaxConns < 0 || c.WriteTimeout < 0 || c.Silence < 0 || c.DrainTimeout < 0 {
		errs = append(errs, errors.New("serve .aiwg clients: a limit is negative"))
	}
	return errors.Join(errs...)
}

// Server answers clients. Serve may be called once.
type Server struct {
	cfg     Config
	store   *perdure.Store
	log     *slog.Logger
	methods map[string]method
	started time.Time

	session *perdure.Session // set by Serve before the first connection
	desks   desks
	stop    chan struct{} // closed when the server begins to stop

	mu     sync.Mutex // guards the fields below
	conns  map[*conn]bool
	closed bool           // no connection begins any more
	wg     sync.WaitGroup // connections
}

// New checks the configuration and returns a server.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, store: cfg.Store, log: cfg.Logger, started: time.Now(), stop: make(chan struct{}),
		conns: make(map[*conn]bool)}
	s.desks.freed = make(chan struct{}, 1)
	s.methods = s.table()
	return s, nil
}

// Serve answers on l until ctx ends; then it takes no new work, lets workers
// that are connected end what they do for DrainTimeout, gives the rest back, and
// returns nil. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	session, err := s.store.OpenSession(ctx, "ipc")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.session = session
	// What is under way when ctx ends is ended, not cut off.
	work := context.WithoutCancel(ctx)
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(work, l) }()
	watched := make(chan struct{})
	watching, stopWatching := context.WithCancel(work)
	go func() {
		defer close(watched)
		s.watch(watching)
	}()
	select {
	case <-ctx.Done():
		close(s.stop)
		s.drain()
		err = l.Close()
		err = errors.Join(err, <-accepted)
	case err = <-accepted:
		close(s.stop)
		err = errors.Join(err, l.Close())
	}
	s.closeConns()
	stopWatching()
	<-watched
	s.giveBack(work)
	return errors.Join(err, session.Close(work))
}

// accept serves connections until the listener is closed.
func (s *Server) accept(ctx context.Context, l net.Listener) error {
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil && temporary(err): // as when there are no more file descriptors
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("accept connection", "error", err)
			s.wait(pause)
			continue
		case err != nil:
			return err
		}
		pause = 0
		s.wg.Go(func() { s.converse(ctx, nc) })
	}
}

// temporary tells of errors of an accept that may be tried again.
func temporary(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Temporary()
}

// wait pauses, not longer than until the server stops.
func (s *Server) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stop:
	}
}

func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// drain waits until no worker that is connected holds a task.
func (s *Server) drain() {
	over := time.NewTimer(s.cfg.DrainTimeout)
	defer over.Stop()
	for s.desks.attended() {
		select {
		case <-s.desks.freed:
		case <-over.C:
			return
		}
	}
}

// lastAnswers is how long answers under way may take at the end.
const lastAnswers = 5 * time.Second

// closeConns ends all connections. Requests that were received are answered, as
// far as the clients read the answers soon.
func (s *Server) closeConns() {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.SetReadDeadline(time.Now()) // one that is closed has ended anyway
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.wg.Wait()
	}()
	timer := time.NewTimer(lastAnswers)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C:
	}
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	<-ended
}

func (s *Server) clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// enter adds a connection; false when there are too many, or it comes too late.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= s.cfg.MaxConns {
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// method is what a name stands for, and the names of its parameters by
// position.
type method struct {
	do    func(ctx context.Context, c *conn, p params) (any, error)
	order []string
}

func (s *Server) table() map[string]method {
	return map[string]method{
		"ping":               {do: s.ping},
		"daemon.status":      {do: s.status},
		"task.submit":        {s.submit, []string{"prompt", "agent", "priority", "metadata"}},
		"task.cancel":        {s.cancel, []string{"taskId"}},
		"task.list":          {s.list, []string{"state", "limit"}},
		"task.get":           {s.get, []string{"taskId"}},
		"task.stats":         {do: s.stats},
		"task.update":        {s.update, []string{"taskId", "updates"}},
		"task.start":         {s.start, []string{"taskId", "pid"}},
		"task.complete":      {s.complete, []string{"taskId", "result"}},
		"task.fail":          {s.fail, []string{"taskId", "error"}},
		"task.append_output": {s.appendOutput, []string{"taskId", "chunk"}},
		"task.cleanup":       {s.cleanup, []string{"maxAge"}},
	}
}

// answer does one request; false for a notification, which has no answer.
func (s *Server) answer(ctx context.Context, c *conn, raw json.RawMessage) (reply, bool) {
	r, err := readRequest(raw)
	if err != nil {
		return reply{Version: "2.0", Error: err, ID: r.id}, true
	}
	result, err := s.call(ctx, c, &r)
	if r.id == nil {
		return reply{}, false
	}
	return reply{Version: "2.0", Result: result, Error: err, ID: r.id}, true
}

func (s *Server) call(ctx context.Context, c *conn, r *request) (result json.RawMessage, refused *Error) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("handler panicked", "method", r.method, "error", v, "stack", string(debug.Stack()))
			result, refused = nil, errorOf(errors.New("panic"))
		}
	}()
	m, known := s.methods[r.method]
	if !known {
		return nil, &Error{Code: CodeUnknownMethod, Message: "Method not found: " + r.method}
	}
	p, refused := readParams(r.params, m.order)
	if refused != nil {
		return nil, refused
	}
	v, err := m.do(ctx, c, p)
	if err == nil {
		result, err = encode(v)
	}
	if err == nil {
		return result, nil
	}
	refused = errorOf(err)
	level := slog.LevelDebug
	if refused.Code == CodeInternal {
		level = slog.LevelError
	}
	s.log.Log(ctx, level, "request refused", "method", r.method, "code", refused.Code, "error", err)
	return nil, refused
}
