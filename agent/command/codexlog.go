package command

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// follower reads a file that an agent writes in addition to its stream, while it grows.
type follower struct {
	// find returns the pattern of the file's path once its session is known.
	find  func(id string) string
	rec   *record
	lines splitter
	file  *os.File
	buf   [32 << 10]byte
}

// poll reads what is new. That there is no such file, or that it cannot be
// read, only means that less is known.
func (f *follower) poll() {
	if f.file == nil && !f.open() {
		return
	}
	for {
		n, err := f.file.Read(f.buf[:])
		_, _ = f.lines.Write(f.buf[:n]) // never fails
		if err != nil || n == 0 {
			return
		}
	}
}

// reID matches an ID that may be part of a glob pattern.
var reID = lazyregexp.New(`^[0-9A-Za-z_-]+$`)

func (f *follower) open() bool {
	if !reID().MatchString(f.rec.id) {
		return false
	}
	paths, err := filepath.Glob(f.find(f.rec.id))
	if err != nil || len(paths) == 0 {
		return false
	}
	f.file, err = os.Open(paths[len(paths)-1])
	return err == nil
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}

// codexLogLine is a line of the log of a thread ("rollout"), with the fields
// that the stream lacks: the total of failed turns, how full the context is, and its
// compactions.
type codexLogLine struct {
	Time    time.Time `json:"timestamp"`
	Type    string    `json:"type"`
	Payload struct {
		Type string `json:"type"`
		// Model is the model of a turn_context.
		Model string `json:"model"`
		// Used and Thread are those of a token_usage_record: what one answer used, and the total.
		Used   *codexUsage `json:"usage"`
		Thread *codexUsage `json:"thread_token_usage"`
		Info   *struct {
			Total  *codexUsage `json:"total_token_usage"`
			Last   *codexUsage `json:"last_token_usage"`
			Window int64       `json:"model_context_window"`
		} `json:"info"`
		Limits struct {
			Primary   *codexWindow `json:"primary"`
			Secondary *codexWindow `json:"secondary"`
		} `json:"rate_limits"`
	} `json:"payload"`
}

// codexWindow is how much of a subscription is used up.
type codexWindow struct {
	Percent  float64 `json:"used_percent"`
	ResetsAt int64   `json:"resets_at"`
}

// followCodex follows the log of the thread.
func followCodex(rec *record, env []string) *follower {
	home := cmp.Or(valueOf(env, "CODEX_HOME"), filepath.Join(valueOf(env, "HOME"), ".codex"))
	f := &follower{rec: rec, find: func(id string) string {
		return filepath.Join(home, "sessions", "*", "*", "*", "rollout-*-"+id+".jsonl")
	}}
	f.lines = splitter{line: func(line []byte) { readCodexLog(rec, line) }, max: DefaultMaxLineBytes, long: func() {}}
	return f
}

// valueOf returns the last value of a variable.
func valueOf(env []string, name string) string {
	value := ""
	for _, v := range env {
		if n, val, ok := strings.Cut(v, "="); ok && n == name {
			value = val
		}
	}
	return value
}

func readCodexLog(rec *record, line []byte) {
	var l codexLogLine
	if !object(line) || !decode(line, &l) {
		return
	}
	old := l.Time.Before(rec.began)
	switch {
	case l.Type == "compacted" && !old:
		rec.say(agent.EventCompaction, "the context was shortened")
	case l.Type == "turn_context":
		rec.model = cmp.Or(l.Payload.Model, rec.model)
	case l.Type == "token_usage_record" && l.Payload.Thread != nil:
		// It comes with the answer; the token_count after the calls of the answer were made.
		readCodexUsage(rec, l.Payload.Thread, l.Payload.Used, 0, old)
	case l.Type == "event_msg" && l.Payload.Type == "token_count":
		readCodexCount(rec, l, old)
	}
}

func readCodexCount(rec *record, l codexLogLine, old bool) {
	info := l.Payload.Info
	if info == nil || info.Total == nil {
		return
	}
	for _, w := range []*codexWindow{l.Payload.Limits.Primary, l.Payload.Limits.Secondary} {
		if w != nil && w.Percent >= 100 && w.ResetsAt > 0 && !old {
			rec.resets = time.Unix(w.ResetsAt, 0).UTC()
		}
	}
	readCodexUsage(rec, info.Total, info.Last, info.Window, old)
}

// readCodexUsage takes the total of the thread, what the last answer used, and the size of the
// context, 0 if it is not known.
func readCodexUsage(rec *record, thread, last *codexUsage, window int64, old bool) {
	sum := total{tokens: thread.tokens()}
	if old {
		// What the thread had used before this turn.
		if !rec.totalKnown {
			rec.from.base, rec.from.known = sum, true
		}
		return
	}
	same := rec.total != nil && *rec.total == sum
	rec.total = &sum
	if last != nil && last.Input > 0 {
		rec.context = last.Input + last.Output
	}
	before := rec.window
	rec.sized(window)
	if !same || rec.window != before { // it repeats itself, which is not a sign of work
		rec.measured()
	}
}
