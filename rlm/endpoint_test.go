package rlm_test

import (
	"net/http/httptest"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/model/openai"
)

// endpoint plays a YAML script as an HTTP endpoint and returns it with a model
// "openai:m" that asks it.
func endpoint(t *testing.T, text string) (*mock.Server, models) {
	t.Helper()
	s, err := mock.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	played := mock.NewServer(s)
	served := httptest.NewServer(played)
	m, err := openai.New(openai.Config{Model: "m", BaseURL: served.URL + "/v1", HTTPClient: served.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		served.Close()
	})
	return played, models{"openai:m": m}
}

// asks wants so many requests at an endpoint, none twice, and as many calls in
// the store, all answered. Whether a whole answer was read, an endpoint cannot
// tell: who has it may be gone before the endpoint looks.
func (b *bench) asks(s *mock.Server, tree perdure.TreeID, want int) {
	b.Helper()
	sum, twice := s.Ledger().Totals(), 0
	for _, e := range s.Ledger().Entries() {
		if e.Started > 1 {
			twice++
		}
	}
	if sum.Started != want || twice != 0 {
		b.Errorf("%d requests, %d of them twice; want %d", sum.Started, twice, want)
		for _, e := range s.Ledger().Entries() {
			b.Logf("%d times: %s", e.Started, e.Prompt)
		}
	}
	if calls := b.usage(tree).Calls; int(calls) != want {
		b.Errorf("the store has %d calls, want %d", calls, want)
	}
	for _, t := range b.tasks(tree) {
		calls, err := b.store.Calls(b.Context(), t.ID)
		b.ok(err)
		for _, c := range calls {
			if c.State != perdure.CallCompleted {
				b.Errorf("call %q is %s", c.ID, c.State)
			}
		}
	}
}
