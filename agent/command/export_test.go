package command

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
)

// Recorded is what an agent once wrote.
type Recorded struct {
	Preset, Session string
	Stdout, Stderr  string
	Log             string // what it wrote in addition to its stream
	Exit            int
	Now             time.Time
	Config          Config
}

// Replay reads a recorded turn as if the agent had just written it.
func Replay(ctx context.Context, rec Recorded) (events []agent.Event, res *agent.Result, err error) {
	v, err := vendorOf(rec.Preset)
	if err != nil {
		return nil, nil, err
	}
	cfg := rec.Config.withDefaults()
	cfg.Program = cmp.Or(cfg.Program, v.about.Program, "plain")
	turn := &agent.Turn{Observe: func(ev agent.Event) { events = append(events, ev) }}
	child, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := newRun(&Agent{cfg: cfg, vendor: v}, turn, readSession(rec.Session), stop)
	r.rec.now, r.rec.began = func() time.Time { return rec.Now }, rec.Now
	write := func(s *splitter, text string) {
		if _, err := s.Write([]byte(text)); err != nil {
			panic(err)
		}
	}
	write(&r.stderr, rec.Stderr)
	write(&r.stdout, rec.Stdout)
	if v.follow != nil {
		log := v.follow(&r.rec, nil)
		write(&log.lines, rec.Log)
	}
	var ended error
	if rec.Exit != 0 {
		ended = &guard.ExitError{Code: rec.Exit, Signal: map[bool]string{true: "killed"}[rec.Exit < 0]}
	}
	res, err = r.finish(ctx, child, ended)
	return events, res, err
}

// Classify is classify.
func Classify(text string, status int, now time.Time) *agent.Error {
	return classify(text, status, now)
}

// SessionOf is what is read from the text of a session.
func SessionOf(text string) (id, again string) {
	s := readSession(text)
	return s.id, s.String()
}

// Split cuts chunks into lines.
func Split(chunks []string, limit int, leaveOut bool) (lines []string, long int) {
	s := splitter{line: func(line []byte) { lines = append(lines, string(line)) }, max: limit}
	if leaveOut {
		s.long = func() { long++ }
	}
	for _, chunk := range chunks {
		_, _ = s.Write([]byte(chunk))
	}
	s.flush()
	return lines, long
}

// Tail keeps the end of chunks.
func Tail(chunks []string, limit int) (string, bool) {
	t := clip.Tail{Limit: limit}
	for _, chunk := range chunks {
		_, _ = t.Write([]byte(chunk)) // never fails
	}
	return t.End()
}

// Watchdog is one that tells how it ended a turn.
type Watchdog struct {
	w   *watchdog
	ctx context.Context
}

// NewWatchdog starts one.
func NewWatchdog(ctx context.Context, idle, patience, linger time.Duration) *Watchdog {
	ctx, stop := context.WithCancelCause(ctx)
	w := &watchdog{idle: idle, patience: patience, linger: linger, end: stop}
	w.start()
	return &Watchdog{w: w, ctx: ctx}
}

// Do does one of its methods.
func (w *Watchdog) Do(what string, until time.Time) {
	switch what {
	case "heard":
		w.w.heard()
	case "progress":
		w.w.progress()
	case "over":
		w.w.over()
	case "limited":
		w.w.limited(&agent.Error{Kind: agent.KindRateLimit, Until: until})
	case "stop":
		w.w.stop()
	}
}

// Cause is why it ended the turn, empty while it has not.
func (w *Watchdog) Cause() string {
	cause := context.Cause(w.ctx)
	if cause == nil {
		return ""
	}
	text, _, _ := strings.Cut(cause.Error(), ":")
	return text
}

// ClaudeHooks is claudeHooks.
func ClaudeHooks(words, args []string) (options, rest []string, err error) {
	set, err := claudeHooks(&hooking{words: words, args: args})
	return set.options, set.rest, err
}
