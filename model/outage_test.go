package model_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/model"
)

// server is a model whose server refuses connections between two times after its start.
type server struct {
	begun    time.Time
	from, to time.Duration
	mu       sync.Mutex
	sent     int
}

func (s *server) Reach(context.Context) error {
	if past := time.Since(s.begun); past >= s.from && past < s.to {
		return errors.New("refused")
	}
	return nil
}

func (s *server) Generate(ctx context.Context, _ *model.Request) (*model.Response, error) {
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()
	if s.Reach(ctx) != nil {
		return nil, &model.Error{Kind: model.KindRefused, Msg: "connection refused"}
	}
	return &model.Response{Text: "answer"}, nil
}

func TestAServerThatAnsweredBeforeIsWaitedFor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		from, to       time.Duration // of the outage
		before         bool          // it answered in an earlier process
		fallback       bool
		patience       time.Duration
		sent           int // requests for the second answer
		answers        bool
		least, longest time.Duration
	}{
		{"comes back", time.Second, time.Minute, false, false, 0, 2, true, 58 * time.Second, 65 * time.Second},
		{"stays away", time.Second, time.Hour, false, false, 0, 1, false, 5 * time.Minute, 5*time.Minute + time.Second},
		{"less patience", time.Second, time.Hour, false, false, 10 * time.Second, 1, false, 10 * time.Second,
			11 * time.Second},
		{"no patience", time.Second, time.Hour, false, false, -1, 3, false, 0, 3 * time.Second},
		{"never answered", 0, time.Hour, false, false, 0, 3, false, 0, 3 * time.Second},
		{"answered in an earlier process", 0, time.Minute, true, false, 0, 2, true, 57 * time.Second, 65 * time.Second},
		{"another model is asked instead", time.Second, time.Hour, false, true, 0, 1, false, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{begun: time.Now(), from: tt.from, to: tt.to}
				g := guarded(t, model.GuardedConfig{Model: s, UntilAnswer: 1, Patience: tt.patience, HasFallback: tt.fallback,
					Answered: func(context.Context) bool { return tt.before }})
				faults := new(model.Faults)
				if tt.from > 0 {
					if _, err := g.Generate(t.Context(), &model.Request{Faults: faults}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(tt.from)
				}
				before, begun := s.sent, time.Now()
				_, err := g.Generate(t.Context(), &model.Request{Faults: faults})
				if (err == nil) != tt.answers || s.sent-before != tt.sent {
					t.Errorf("%d requests, %v", s.sent-before, err)
				}
				within(t, "time", time.Since(begun), tt.least, tt.longest)
				if !tt.answers {
					before = s.sent
					_, err = g.Generate(t.Context(), &model.Request{Faults: faults})
					var e *model.Error
					if !errors.As(err, &e) || !e.Permanent || s.sent != before {
						t.Errorf("the next call sent %d requests: %v", s.sent-before, err)
					}
				}
			})
		})
	}
}

func TestAnOutageIsWaitedForByAllCallsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now(), from: time.Second, to: time.Minute}
		g := guarded(t, model.GuardedConfig{Model: s, UntilAnswer: 1, Concurrency: 8})
		faults := new(model.Faults)
		if _, err := g.Generate(t.Context(), &model.Request{Faults: faults}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				if _, err := g.Generate(t.Context(), &model.Request{Faults: faults}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(10 * time.Second)
		if g.Outage() == "" {
			t.Error("the outage is not shown")
		}
		calls.Wait()
		if g.Outage() != "" {
			t.Errorf("after the outage: %s", g.Outage())
		}
	})
}
