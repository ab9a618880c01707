package acp

import "testing"

// A session that is loaded while its next turn begins does not replace it: the turn could not be
// cancelled, and another could begin next to it.
func TestLoadedDuringATurn(t *testing.T) {
	t.Parallel()
	s := &server{ctx: t.Context(), sessions: make(map[string]*session)}
	if err := s.add(&session{id: "acp-1"}); err != nil {
		t.Fatal(err)
	}
	_, running, _, err := s.begin("acp-1")
	if err != nil {
		t.Fatal(err)
	}
	loaded := &session{id: "acp-1"}
	if err := s.add(loaded); err == nil {
		t.Error("a loaded session replaced one whose turn is running")
	}
	running.end()
	if err := s.add(loaded); err != nil {
		t.Error(err)
	}
	if _, ss, _, err := s.begin("acp-1"); err != nil || ss != loaded {
		t.Errorf("the turn began in %p, %v; want %p", ss, err, loaded)
	}
}
