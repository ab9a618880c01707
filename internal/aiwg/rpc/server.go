package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// Config configures a [Server].
type Config struct {
	// Store holds the tasks. Required.
	Store *perdure.Store
	// Execute returns the configuration and the limits of the trees that the daemon
	// executes for an agent ("" for none); false if it cannot, so that they wait for a
	// worker. It is called concurrently. If it is nil, all tasks wait for a worker.
	Execute func(agent string) (Execution, bool)
	// Concurrency is the number of tasks that the daemon executes at once, for
	// daemon.status.
	Concurrency int
	// MaxLineBytes is the limit of a line without its end. 0: DefaultMaxLineBytes.
	MaxLineBytes int
	// MaxConns is the limit of connections. 0: DefaultMaxConns.
	MaxConns int
	// WriteTimeout is the timeout of a write to a client. 0: DefaultWriteTimeout.
	WriteTimeout time.Duration
	// Silence is how long a disconnected worker keeps its task. 0: DefaultSilence.
	Silence time.Duration
	// DrainTimeout is how long Serve waits for workers at its end.
	// 0: DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Version is the version in daemon.status.
	Version string
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
}

// Execution is the configuration and the limits of a tree that the daemon executes.
type Execution struct {
	Config json.RawMessage
	Limits perdure.Limits
}

func (c Config) withDefaults() Config {
	c.MaxLineBytes = cmp.Or(c.MaxLineBytes, DefaultMaxLineBytes)
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.Silence = cmp.Or(c.Silence, DefaultSilence)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Execute == nil {
		c.Execute = func(string) (Execution, bool) { return Execution{}, false }
	}
	return c
}

// Server serves clients. Serve can be called once.
type Server struct {
	cfg     Config
	store   *perdure.Store
	log     *slog.Logger
	methods map[string]method
	started time.Time

	session *perdure.Session // set by Serve before the first connection
	items   workItems
	stop    chan struct{} // closed when the server begins to stop

	mu     sync.Mutex // guards the fields below
	conns  map[*conn]bool
	closed bool           // no new connections
	wg     sync.WaitGroup // connections
}

// New checks the configuration and returns a server.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	switch {
	case cfg.Store == nil:
		return nil, errors.New("serve .aiwg clients: Store is missing")
	case min(cfg.MaxLineBytes, cfg.MaxConns) < 0 || min(cfg.WriteTimeout, cfg.Silence, cfg.DrainTimeout) < 0:
		return nil, errors.New("serve .aiwg clients: a limit is negative")
	}
	s := &Server{cfg: cfg, store: cfg.Store, log: cfg.Logger, started: time.Now(), stop: make(chan struct{}),
		conns: make(map[*conn]bool)}
	s.items.freed = make(chan struct{}, 1)
	s.methods = s.table()
	return s, nil
}

// Serve serves the connections of l until ctx ends. Then it accepts no new tasks, waits
// DrainTimeout for the connected workers, releases the other leases, and returns nil. It
// closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	session, err := s.store.OpenSession(ctx, "ipc")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.session = session
	// Requests in progress are completed when ctx ends.
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
	s.releaseAll(work)
	return errors.Join(err, session.Close(work))
}

// accept serves connections until the listener is closed.
func (s *Server) accept(ctx context.Context, l net.Listener) error {
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil && temporary(err): // such as too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("accept connection", "error", err)
			s.wait(pause)
			continue
		case err != nil:
			return err
		}
		pause = 0
		s.wg.Go(func() { s.serveConn(ctx, nc) })
	}
}

// temporary reports whether an accept can be retried.
func temporary(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Temporary()
}

// wait waits for d or until the server stops.
func (s *Server) wait(d time.Duration) {
	select {
	case <-time.After(d):
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

// drain waits until no connected worker holds a task.
func (s *Server) drain() {
	timeout := time.After(s.cfg.DrainTimeout)
	for s.items.connected() {
		select {
		case <-s.items.freed:
		case <-timeout:
			return
		}
	}
}

// lastAnswers is the timeout of the last answers.
const lastAnswers = 5 * time.Second

// closeConns closes all connections after it answered the received requests, if the
// clients read the answers in time.
func (s *Server) closeConns() {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.SetReadDeadline(time.Now()) // fails only if it is closed
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.wg.Wait()
	}()
	select {
	case <-ended:
		return
	case <-time.After(lastAnswers):
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

// addConn adds a connection; false if there are too many, or the server is closed.
func (s *Server) addConn(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= s.cfg.MaxConns {
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Server) removeConn(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// method is a method and the names of its parameters by position.
type method struct {
	do    func(ctx context.Context, c *conn, p *params) (any, error)
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
		"task.summary":       {do: s.summary},
		"task.update":        {s.update, []string{"taskId", "updates"}},
		"task.start":         {s.start, []string{"taskId", "pid"}},
		"task.complete":      {s.complete, []string{"taskId", "result"}},
		"task.fail":          {s.fail, []string{"taskId", "error"}},
		"task.append_output": {s.appendOutput, []string{"taskId", "chunk"}},
		"task.cleanup":       {s.cleanup, []string{"maxAge"}},
	}
}

// answer executes one request; false for a notification, which has no answer.
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
	p := readParams(r.params, m.order)
	if p.err != nil {
		return nil, errorOf(p.err)
	}
	v, err := m.do(ctx, c, p)
	if err == nil {
		result, err = jsontree.Marshal(v, "")
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
