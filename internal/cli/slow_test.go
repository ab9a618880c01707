package cli

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func slowTask(since time.Time) *client.SlowestTask {
	return &client.SlowestTask{ActiveTask: perdure.ActiveTask{Task: 12, Prompt: "src/x.go\x1b[2J", Since: since},
		Model: "openai:gpt-x"}
}

func TestPlainProgressNamesTheSlowest(t *testing.T) {
	t.Parallel()
	s, b := screen(80)
	s.Terminal = false
	v := newProgressView(s, false)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(second int, done int64) {
		v.update(start.Add(time.Duration(second)*time.Second),
			snapshot{progress: progressOf(done, 100), slowest: slowTask(start),
				notes: []string{"openai:gpt-x: rate limit, waits 12s"}})
	}
	at(0, 0)
	at(3, 15)   // nothing is slow yet
	at(41, 30)  // now it is
	at(60, 30)  // only the time changed
	at(102, 30) // for a minute
	at(130, 30)
	same(t, b.String(), `
perdure: tree-12345678: 15%, 15 of 100 tasks, 2 running, ETA ~2m 15s, $0.0650; openai:gpt-x: rate limit, waits 12s
perdure: tree-12345678: 30%, 30 of 100 tasks, 2 running, ETA ~2m 15s, $0.0650; openai:gpt-x: rate limit, waits 12s; slowest: task-0012 "src/x.go␛[2J" 41s in openai:gpt-x
perdure: tree-12345678: 30%, 30 of 100 tasks, 2 running, ETA ~2m 15s, $0.0650; openai:gpt-x: rate limit, waits 12s; slowest: task-0012 "src/x.go␛[2J" 1m 42s in openai:gpt-x
`)
}

func TestTerminalProgressNamesTheSlowest(t *testing.T) {
	t.Parallel()
	s, b := screen(60)
	v := newProgressView(s, false)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v.update(now, snapshot{progress: progressOf(50, 100), slowest: slowTask(now.Add(-41 * time.Second)),
		notes: []string{"openai:gpt-x waits 12s"}})
	same(t, b.String(), "\x1b[J"+`[██████████▒▒▒▒▒▒▒▒▒▒]  50%  50 of 100 tasks, 2 running, E…
  slowest: task-0012 "src/x.go␛[2J" 41s in openai:gpt-x
  openai:gpt-x waits 12s
`)
}

func TestStatusNamesTheSlowest(t *testing.T) {
	t.Parallel()
	s, _ := screen(60)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	status := &client.Status{Slowest: slowTask(now.Add(-90 * time.Second)),
		Pauses: []string{"openai:gpt-x: rate limit, waits 12s"}}
	same(t, slowLines(s, status, now), `
slowest: task-0012 "src/x.go␛[2J" 1m 30s in openai:gpt-x
openai:gpt-x: rate limit, waits 12s
`)
	if got := slowLines(s, new(client.Status), now); got != "" {
		t.Errorf("without anything slow it says %q", got)
	}
}
