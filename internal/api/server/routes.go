package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/perdure/perdure"
)

// handler returns the answer to a request, which is sent as JSON; nil if the handler
// has written it.
type handler func(r *request) (answer any, err error)

// routes is the whole API.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h handler) {
		mux.Handle(pattern, s.guard(h))
	}
	handle("GET /v1/health", s.health)
	handle("GET /v1/version", s.version)

	handle("POST /v1/contexts", s.createContext)
	handle("GET /v1/contexts/{id}", s.context)
	handle("DELETE /v1/contexts/{id}", s.dropContext)

	handle("POST /v1/estimates", s.estimate)
	handle("POST /v1/trees", s.createTree)
	handle("GET /v1/trees", s.trees)
	handle("GET /v1/trees/{id}", s.tree)
	handle("GET /v1/trees/{id}/status", s.treeStatus)
	handle("GET /v1/trees/{id}/result", ofTree(s.treeResult))
	handle("GET /v1/trees/{id}/tasks", s.treeTasks)
	handle("GET /v1/trees/{id}/outline", s.treeOutline)
	handle("GET /v1/trees/{id}/turns", s.treeTurns)
	handle("GET /v1/trees/{id}/report", s.treeReport)
	handle("GET /v1/trees/{id}/gates", s.gates)
	handle("POST /v1/trees/{id}/answer", s.answerGate)
	handle("POST /v1/trees/{id}/cancel", s.cancelTree)
	handle("POST /v1/trees/{id}/resume", s.resumeTree)
	handle("POST /v1/trees/{id}/replay", ofTree(s.replayTree))

	handle("GET /v1/tasks/{id}", s.task)
	handle("GET /v1/tasks/{id}/calls", s.taskCalls)
	handle("POST /v1/tasks/{id}/cancel", s.cancelTask)
	handle("POST /v1/tasks/{id}/retry", s.retryTask)

	handle("GET /v1/state", s.state)
	handle("GET /v1/variables", s.variables)
	handle("GET /v1/variables/{name}", s.variable)
	handle("PUT /v1/variables/{name}", s.setVariable)
	handle("DELETE /v1/variables/{name}", s.deleteVariable)
	handle("POST /v1/variables/{name}/rename", s.renameVariable)
	handle("POST /v1/variables/{name}/increment", s.incrementVariable)
	handle("POST /v1/variables/{name}/append", s.appendVariable)
	handle("GET /v1/history", s.history)

	handle("POST /v1/checkpoints", s.saveCheckpoint)
	handle("GET /v1/checkpoints", s.checkpoints)
	handle("GET /v1/checkpoints/diff", s.diff)
	handle("POST /v1/checkpoints/rollback", s.rollback)
	handle("POST /v1/checkpoints/delete", s.deleteCheckpoint)

	handle("GET /v1/handoff", s.handoff)
	handle("POST /v1/handoff/entries", s.writeHandoff)
	handle("POST /v1/handoff/claim", s.claimHandoff)
	handle("POST /v1/handoff/release", s.releaseHandoff)
	handle("GET /v1/handoffs", s.handoffs)
	handle("GET /v1/handoffs/{id}/entries", s.handoffEntries)

	handle("GET /v1/loops", s.loops)
	handle("GET /v1/loops/{id}", ofTree(s.records.Loop))
	handle("GET /v1/loops/{id}/document", ofTree(s.records.Document))
	handle("GET /v1/loops/{id}/iterations", iterations("from", 0, s.records.Iterations))
	handle("GET /v1/loops/{id}/briefs", iterations("from", 0, s.records.Briefs))
	handle("GET /v1/loops/{id}/regressed", iterations("below", maxNumber, s.records.Regressed))
	handle("GET /v1/loops/{id}/history", s.loopHistory)
	handle("GET /v1/loops/{id}/gates", s.gates)
	handle("GET /v1/loops/{id}/false-alarms", s.falseAlarms)
	handle("POST /v1/loops/{id}/false-alarms", s.markFalse)
	handle("POST /v1/loops/{id}/ask", s.askLoop)
	handle("POST /v1/loops/{id}/resume", s.resumeLoop)
	handle("POST /v1/loops/{id}/answer", s.answerGate)
	handle("GET /v1/gates", s.openGates)

	handle("GET /v1/events", s.events)

	handle("POST /v1/gc", s.collect)
	handle("GET /v1/check", s.check)
	return s.limitBodies(s.fromPrograms(s.missing(mux)))
}

// ofTree answers with what read returns for the tree in the path.
func ofTree[T any](read func(ctx context.Context, id perdure.TreeID) (T, error)) handler {
	return func(r *request) (any, error) {
		id := r.pathTree()
		if err := r.done(); err != nil {
			return nil, err
		}
		return read(r.Context(), id)
	}
}

// missing answers requests that no route takes with a problem document too.
func (s *server) missing(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		own := headerOnly{} // the mux's own answer: 404 or 405
		h.ServeHTTP(own, r)
		if allow := http.Header(own).Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			s.fail(w, r, &statusError{status: http.StatusMethodNotAllowed, err: &perdure.Error{
				Code: perdure.CodeInvalid, Op: "serve request",
				Msg:  fmt.Sprintf("%s is not possible on %q", r.Method, r.URL.Path),
				Hint: "possible are " + allow,
			}})
			return
		}
		s.fail(w, r, &perdure.Error{Code: perdure.CodeNotFound, Op: "serve request",
			Msg:  fmt.Sprintf("there is nothing at %q", r.URL.Path),
			Hint: "the API is at /v1; this server may be of another version"})
	})
}

// headerOnly is a response of which only the header matters.
type headerOnly http.Header

// Header returns the header to fill in.
func (h headerOnly) Header() http.Header { return http.Header(h) }

// Write drops the body.
func (h headerOnly) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader drops the status.
func (h headerOnly) WriteHeader(int) {}

// guard runs h, answers its error, and keeps its panics to this request.
func (s *server) guard(h handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := &watched{ResponseWriter: rw}
		begin := time.Now()
		defer func() {
			v := recover()
			if v != nil {
				s.panicked(w, r, v)
			}
			s.log.DebugContext(r.Context(), "request", "method", r.Method, "pattern", r.Pattern,
				"status", w.status, "duration_ms", time.Since(begin).Milliseconds())
			if v != nil && (w.begun || aborts(v)) {
				panic(http.ErrAbortHandler) // cuts the connection: what was sent is not whole
			}
		}()
		answer, err := h(s.request(w, r))
		if err == nil && answer != nil {
			err = s.reply(w, answer)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// aborts reports whether a handler panicked with v to cut its connection.
func aborts(v any) bool {
	err, ok := v.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

func (s *server) panicked(w *watched, r *http.Request, v any) {
	if aborts(v) {
		return
	}
	s.log.ErrorContext(r.Context(), "handler panicked", "pattern", r.Pattern,
		"error", fmt.Sprint(v), "stack", string(debug.Stack()))
	if !w.begun {
		s.fail(w, r, &perdure.Error{Code: perdure.CodeInternal, Op: "serve request"})
		w.begun = false // the problem is the whole answer
	}
}

// watched remembers what was sent.
type watched struct {
	http.ResponseWriter
	status int
	begun  bool
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends the header.
func (w *watched) WriteHeader(status int) {
	w.status, w.begun = status, true
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *watched) Write(p []byte) (int, error) {
	if !w.begun {
		w.status, w.begun = http.StatusOK, true
	}
	return w.ResponseWriter.Write(p)
}
