package acp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/jsonrpc"
)

// errCancelled is the cause of the end of a turn that the user cancelled.
var errCancelled = errors.New("cancelled by the user")

// errBusy returns the error for a session whose turn is running.
func errBusy() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session has a prompt that is not answered"}
}

// session is a conversation of an editor about a folder.
type session struct {
	id  string
	dir string

	mu   sync.Mutex // guards the following
	mode Mode
	// stop ends the turn that is running; nil without one.
	stop context.CancelCauseFunc

	// The following belong to the turn that is running.

	// until and agent replace those of new loops, if not empty.
	until, agent string
	// trusted are the lines that the user trusts for this session, asked counts the questions.
	trusted []string
	asked   int
	// last is the last prompt that created a tree; nil without one. prompts counts them.
	last    *promptEntry
	prompts int
}

// newSessionID returns a random ID.
func newSessionID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return "acp-" + hex.EncodeToString(id[:])
}

// cancel cancels the turn that is running, if there is one.
func (ss *session) cancel() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.stop != nil {
		ss.stop(errCancelled)
	}
}

// begin begins a turn of an open session. The context ends when it is cancelled or when the agent
// stops.
func (s *server) begin(id string) (context.Context, *session, Mode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss := s.sessions[id] // sessions are not closed
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.stop != nil {
		return nil, nil, "", errBusy()
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	ss.stop = stop
	return ctx, ss, ss.mode, nil
}

// end ends the turn.
func (ss *session) end() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.stop(nil)
	ss.stop = nil
}

// add adds a session. A session that is loaded again replaces the earlier one, unless that has
// begun a turn meanwhile.
func (s *server) add(ss *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	earlier, known := s.sessions[ss.id]
	switch {
	case known && earlier.busy():
		return errBusy()
	case !known && len(s.sessions) >= MaxSessions:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("%d sessions are open, which is the maximum",
			MaxSessions)}
	}
	s.sessions[ss.id] = ss
	return nil
}

// find returns an open session.
func (s *server) find(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss, ok := s.sessions[id]
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeNotFound, Message: fmt.Sprintf(
			"no session %.100q is open; session/load opens an earlier one", id)}
	}
	return ss, nil
}

// open answers session/new.
func (s *server) open(m *jsonrpc.Message) {
	var p newParams
	err := parse(m.Params, &p)
	if err == nil {
		err = checkFolder(p.Cwd)
	}
	ss := &session{id: newSessionID(), dir: p.Cwd, mode: s.cfg.Mode}
	if err == nil {
		err = s.add(ss)
	}
	if err != nil {
		s.finish(m, nil, err)
		return
	}
	s.noteServers(&p)
	s.finish(m, object{"sessionId": ss.id, "modes": modes(ss.mode)}, nil)
	s.offerCommands(ss.id)
}

// noteServers logs that the MCP servers of the editor are not used: agents of loops use their own.
func (s *server) noteServers(p *newParams) {
	if len(p.Servers) > 0 {
		s.cfg.Logger.Warn("MCP servers of the editor are not used", "servers", len(p.Servers))
	}
}

// checkFolder returns an error unless dir is a folder.
func checkFolder(dir string) error {
	if !filepath.IsAbs(dir) {
		return invalidf("cwd is %.200q, which is not an absolute path", dir)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return invalidf("cwd: %s", err)
	case !info.IsDir():
		return invalidf("cwd is %.200q, which is not a folder", dir)
	}
	return nil
}

// setMode answers session/set_mode.
func (s *server) setMode(m *jsonrpc.Message) {
	var p modeParams
	err := parse(m.Params, &p)
	if err == nil && p.Mode != ModeRun && p.Mode != ModeLoop {
		err = invalidf("unknown mode %.100q; the modes are run and loop", p.Mode)
	}
	var ss *session
	if err == nil {
		ss, err = s.find(p.SessionID)
	}
	if err != nil {
		s.finish(m, nil, err)
		return
	}
	ss.mu.Lock()
	ss.mode = p.Mode
	ss.mu.Unlock()
	s.finish(m, object{}, nil)
}

// load answers session/load: it replays the prompts of a session, or a tree.
func (s *server) load(m *jsonrpc.Message) {
	var p newParams
	err := parse(m.Params, &p)
	if err == nil {
		err = checkFolder(p.Cwd)
	}
	ss := &session{id: p.SessionID, dir: p.Cwd, mode: s.cfg.Mode}
	if err == nil {
		err = s.free(ss.id)
	}
	if err == nil {
		err = s.replay(s.ctx, ss)
	}
	if err == nil {
		err = s.add(ss)
	}
	if err != nil {
		s.finish(m, nil, err)
		return
	}
	s.noteServers(&p)
	s.finish(m, object{"modes": modes(ss.mode)}, nil)
	s.offerCommands(ss.id)
}

// free returns an error if a turn of the session is running.
func (s *server) free(id string) error {
	ss, err := s.find(id)
	if err != nil {
		return nil //nolint:nilerr // it is not open
	}
	if ss.busy() {
		return errBusy()
	}
	return nil
}

// busy reports whether a turn is running.
func (ss *session) busy() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.stop != nil
}

// prompt answers session/prompt.
func (s *server) prompt(m *jsonrpc.Message) {
	var p promptParams
	err := parse(m.Params, &p)
	var ss *session
	if err == nil {
		ss, err = s.find(p.SessionID)
	}
	var in input
	if err == nil {
		in, err = readPrompt(ss.dir, p.Prompt)
	}
	if err != nil {
		s.finish(m, nil, err)
		return
	}
	ctx, ss, mode, err := s.begin(ss.id)
	if err != nil {
		s.finish(m, nil, err)
		return
	}
	s.work.Go(func() {
		t := &turn{s: s, ss: ss, mode: mode}
		reason, err := t.execute(ctx, &in)
		ss.end()
		s.finish(m, object{"stopReason": reason}, err)
	})
}

// update sends an update of a session. It waits for an editor that reads slowly: a session that is
// loaded can have many.
func (s *server) update(id string, kind string, fields object) {
	fields["sessionUpdate"] = kind
	s.conn.NotifyWhenRead(s.ctx, methodUpdate, object{"sessionId": id, "update": fields})
}

// say sends text of the agent.
func (s *server) say(id, text string) {
	if text != "" {
		s.update(id, "agent_message_chunk", object{"content": textBlock(text + "\n\n")})
	}
}

// openStore opens the store of a session to read it.
func (s *server) openStore(ctx context.Context, ss *session) (*Project, error) {
	p, err := s.cfg.Host.Open(ctx, &OpenRequest{Dir: ss.dir, Read: true})
	if perdure.CodeOf(err) == perdure.CodeNotFound {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeNotFound, Message: message(err)}
	}
	return p, err
}
