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

// asks wants so many requests at an endpoint, all answered, none twice, and as
// many calls in the store.
func (b *bench) asks(s *mock.Server, tree perdure.TreeID, want int) {
	b.Helper()
	sum := s.Ledger().Totals()
	if sum.Finished != want || sum.Failed != 0 || len(s.Ledger().Repeated()) != 0 {
		b.Errorf("%d requests were answered and %d not, %d twice; want %d", sum.Finished, sum.Failed, len(s.Ledger().Repeated()), want)
		for _, e := range s.Ledger().Entries() {
			b.Logf("%d times: %s", e.Started, e.Prompt)
		}
	}
	if calls := b.usage(tree).Calls; int(calls) != want {
		b.Errorf("the store has %d calls, want %d", calls, want)
	}
}
