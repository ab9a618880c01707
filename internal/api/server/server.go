// Package server is the HTTP API /v1 of perdure over a store: one
// [net/http.Handler], which the daemon serves on its socket and which commands
// call in process when no daemon runs.
//
// There is one file per noun; routes.go lists all of them. The types of the
// root package are the wire types. Every error is an RFC 9457 problem document
// with the code of a [perdure.Error]; causes are logged and never sent.
package server

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/rlm"
)

// Launcher creates trees of the kinds that the process can execute.
type Launcher interface {
	// Launch checks the request and creates its tree. It returns the tree of
	// the first request when the idempotency key was used before, and fails with
	// perdure.CodeConflict if that was another request.
	Launch(ctx context.Context, req LaunchRequest) (perdure.Tree, error)
	// Estimate returns what a run takes, see rlm.Executor. It creates nothing.
	Estimate(ctx context.Context, req LaunchRequest) (rlm.Estimate, error)
	// Resume prepares a run to continue, see rlm.Executor.
	Resume(ctx context.Context, req ResumeRequest) (perdure.RecoverReport, error)
	// Replay runs the code of a tree's REPLs again, see rlm.Executor. It changes nothing.
	Replay(ctx context.Context, tree perdure.TreeID) (rlm.Replay, error)
}

// ResumeRequest asks to continue a run.
type ResumeRequest struct {
	Tree perdure.TreeID
	// Changes is a JSON object, or nil.
	Changes json.RawMessage
	// Owner, when set, is the only session that may execute the tree.
	Owner *perdure.Session
	// Supervised is that of LaunchRequest.
	Supervised bool
}

// LaunchRequest asks for a tree.
type LaunchRequest struct {
	// Kind is "run" when the request did not say.
	Kind      string
	Name      string
	Prompt    string
	ContextID string
	// Ask is the tree to which Prompt is a further question; empty for others.
	Ask perdure.TreeID
	// Config is a JSON object, or nil.
	Config         json.RawMessage
	IdempotencyKey string
	// Request is the digest of the request, see [perdure.TreeSpec]; empty without a key.
	Request string
	// Owner, when set, is the only session that may execute the tree.
	Owner *perdure.Session
	// Supervised is set if the request comes over a socket from a program that a loop or a run
	// has started. What such a program starts has to end with it, and it does not get the keys
	// of the server.
	Supervised bool
}

// Limits bound what a request may take. Zero values mean the defaults.
type Limits struct {
	// JSONBytes is the size of a JSON body. Defaults to 8 MiB.
	JSONBytes int64
	// ValueBytes is the size of a variable's value. Defaults to
	// perdure.MaxVariableBytes.
	ValueBytes int64
	// ContextBytes is the size of an uploaded context. Defaults to 8 GiB.
	ContextBytes int64
	// Wait is the longest that a request may wait for a tree. Defaults to 60 s.
	Wait time.Duration
	// Heartbeat is the time between signs of life on an event stream.
	// Defaults to 15 s.
	Heartbeat time.Duration
	// Body is how long the body of a request may take to arrive. Defaults to 30 s.
	Body time.Duration
	// Pause is the longest pause within the upload of a context, which clients make while
	// they send it. Defaults to 10 minutes.
	Pause time.Duration
	// Write is how long a reader may stop a response. A reader of events that
	// is slower is disconnected; it resumes where it was. Defaults to 30 s.
	Write time.Duration
}

// Config says what the server serves.
type Config struct {
	// Store is required. The server does not close it.
	Store *perdure.Store
	// Launcher creates trees; without one POST /v1/trees is unavailable.
	Launcher Launcher
	// ResumeLoop lets a loop go on, see loop.Engine; without it POST
	// /v1/loops/{id}/resume is unavailable.
	ResumeLoop func(ctx context.Context, id perdure.TreeID, req record.ResumeRequest) (record.Resumed, error)
	// Session is the process's own session, the one that may be named as the
	// owner of a new tree; may be nil.
	Session *perdure.Session
	// Pauses, when set, returns the models and indexes that the process waits for and why, one line
	// each.
	Pauses func() []string
	// Version is the version in the answer of GET /v1/version.
	Version string
	// Draining, when it is closed, ends event streams and waiting requests and
	// refuses new trees; nil never does.
	Draining <-chan struct{}
	Limits   Limits
	// Logger receives requests (debug) and causes of internal errors; nil
	// discards.
	Logger *slog.Logger
}

func (l Limits) withDefaults() Limits {
	l.JSONBytes = cmp.Or(l.JSONBytes, 8<<20)
	l.ValueBytes = cmp.Or(l.ValueBytes, perdure.MaxVariableBytes)
	l.ContextBytes = cmp.Or(l.ContextBytes, 8<<30)
	l.Wait = cmp.Or(l.Wait, time.Minute)
	l.Heartbeat = cmp.Or(l.Heartbeat, 15*time.Second)
	l.Body = cmp.Or(l.Body, 30*time.Second)
	l.Pause = cmp.Or(l.Pause, 10*time.Minute)
	l.Write = cmp.Or(l.Write, 30*time.Second)
	return l
}

type server struct {
	cfg     Config
	store   *perdure.Store
	records *record.Records
	ledgers *ledger.Store
	limits  Limits
	log     *slog.Logger
}

// New returns the handler of the API. It may be used by several servers and
// transports at once and needs no closing. It panics without a store.
func New(cfg Config) http.Handler {
	if cfg.Store == nil {
		panic("server: Config.Store is missing")
	}
	s := &server{cfg: cfg, store: cfg.Store, records: record.New(cfg.Store), ledgers: ledger.NewStore(cfg.Store),
		limits: cfg.Limits.withDefaults(), log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}
	return s.routes()
}

func (s *server) draining() bool {
	select {
	case <-s.cfg.Draining:
		return true
	default:
		return false
	}
}
