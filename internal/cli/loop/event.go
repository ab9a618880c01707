package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/branch"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/record"
)

// eventData is the data of the events that are shown; each has some of the fields.
type eventData struct {
	Iteration   int     `json:"iteration"`
	Agent       string  `json:"agent"`
	Passed      bool    `json:"passed"`
	Skipped     bool    `json:"skipped"`
	Quality     *int    `json:"quality"`
	Void        bool    `json:"void"`
	Failing     int     `json:"failing"`
	Regressions int     `json:"regressions"`
	Reason      string  `json:"reason"`
	Why         string  `json:"why"`
	Until       string  `json:"until"`
	Text        string  `json:"text"`
	Message     string  `json:"message"`
	Files       float64 `json:"files"`
	Status      string  `json:"status"`
	Diagnosis   string  `json:"diagnosis"`
	Answer      string  `json:"answer"`
	By          string  `json:"by"`
	Used        float64 `json:"used_percent"`
	Source      string  `json:"source"`
	Level       string  `json:"risk_level"`
	Target      string  `json:"target"`
	Stop        bool    `json:"stop"`
	Gate        int     `json:"gate"`
	PID         int     `json:"pid"`
	Program     string  `json:"program"`
	From        string  `json:"from"`
	To          string  `json:"to"`
	Commit      string  `json:"commit"`
	Branch      string  `json:"branch"`
	Final       bool    `json:"final"`
	Path        string  `json:"path"`
	Folder      string  `json:"folder"`
	Uncommitted int64   `json:"uncommitted"`
	Ignored     int64   `json:"ignored_files"`

	Variables int64    `json:"variables"`
	Names     []string `json:"names"`
	Unset     []string `json:"unset"`

	Hint    string `json:"hint"`
	Attempt int    `json:"attempt"`
	Of      int    `json:"of"`
	Retry   int    `json:"retry"`
	Retries int    `json:"retries"`

	Changes []record.FieldChange `json:"changes"`
}

// line returns an event as one line, or "" for events that are not shown.
func (c *commands) line(e *perdure.Event) string {
	var d eventData
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	switch e.Kind {
	case loop.EventStarted:
		return "baseline: snapshot of " + human.Count(int64(d.Files), "file") + "; running the check"
	case loop.EventWithheld:
		return c.Err.Safe(withheld(&d))
	case loop.EventIteration:
		return fmt.Sprintf("iteration %d: %s started", d.Iteration, c.Err.Safe(d.Agent))
	case loop.EventCleanCopy:
		return d.where() + inCleanCopy
	case loop.EventMeasured:
		if d.Skipped {
			return fmt.Sprintf("iteration %d: check was not run", d.Iteration)
		}
		return measured(&d)
	case loop.EventRegression:
		return c.Err.Bold(fmt.Sprintf("iteration %d: regression: %s", d.Iteration, c.Err.Safe(d.Text)))
	case loop.EventRecovery:
		return c.Err.Safe(diagnosed(&d))
	case loop.EventRisky:
		answer := map[string]string{"": "observed", "allow": "allowed", "warn": "allowed with a warning",
			"gate": "sent to a gate", "block": "denied"}[d.Answer]
		return fmt.Sprintf("iteration %d: risky tool call (%s), %s: %s", d.Iteration, c.Err.Safe(d.Level), answer,
			c.Err.Safe(d.Target))
	case loop.EventDenied:
		return c.Err.Safe(denied(&d))
	case loop.EventAgentWaits:
		return c.Err.Safe(agentWaits(&d))
	case loop.EventLevel:
		if d.From == "" {
			return "" // the first level
		}
		return fmt.Sprintf("iteration %d: reminders are now %s (%s)", d.Iteration, c.Err.Safe(d.To), c.Err.Safe(d.Reason))
	case loop.EventReassigned:
		return fmt.Sprintf("iteration %d: %s takes over: %s", d.Iteration, c.Err.Safe(d.Agent), c.Err.Safe(d.Why))
	case loop.EventContext:
		what := "work recorded"
		if d.Stop {
			what = "continuing in a new session"
		}
		return fmt.Sprintf("iteration %d: %.0f%% of the agent's context used (%s); %s", d.Iteration, d.Used,
			c.Err.Safe(d.Source), what)
	case loop.EventWorktree:
		return c.Err.Safe(madeWorktree(&d))
	case loop.EventCommitted:
		return c.Err.Safe(committed(&d))
	case loop.EventReverted:
		return fmt.Sprintf("iteration %d: undone: %s", d.Iteration, c.Err.Safe(d.Why))
	case loop.EventWaiting:
		until := localDay(d.Until, time.Now())
		return fmt.Sprintf("iteration %d: waiting until %s (%s)", d.Iteration, until, c.Err.Safe(d.Why))
	case loop.EventAgentError, loop.EventWarning:
		text := d.where() + c.Err.Safe(d.Message)
		if d.Retry > 0 {
			text += fmt.Sprintf("; retry %d of %d", d.Retry, d.Retries)
		}
		return text
	case loop.EventRestored:
		return c.Err.Safe(restored(&d))
	case loop.EventPaused:
		return "paused: " + c.Err.Safe(d.Reason)
	case loop.EventResumed:
		return "resumed"
	case record.EventReopened:
		return "resumed after its end"
	case record.EventConfigured:
		if len(d.Changes) == 0 {
			return ""
		}
		return "changed: " + c.Err.Safe(changed(d.Changes))
	case loop.EventLeft:
		return c.Err.Safe(d.Reason)
	case perdure.EventLoopGateRefused:
		return c.Err.Safe(fmt.Sprintf("gate %d: refused an answer of %s: %s", d.Gate, process(d.PID, d.Program), d.Why))
	case perdure.EventLoopGateAnswered:
		return strings.TrimSpace(fmt.Sprintf("answered: %s %s", d.Answer, c.Err.Safe(d.Reason)))
	default:
		return ""
	}
}

// diagnosed returns the text for the assumed cause of a regression.
func diagnosed(d *eventData) string {
	why := map[state.Diagnosis]string{state.RewardHacking: "the check was weakened instead of passed",
		state.TaskComplexity: "too much for one turn"}
	text := d.where() + "diagnosis: " + d.Diagnosis
	if more := cmp.Or(why[state.Diagnosis(d.Diagnosis)], d.Why); more != "" {
		text += " (" + more + ")"
	}
	return text
}

// restored returns the text for files that were restored.
func restored(d *eventData) string {
	text := fmt.Sprintf("iteration %d: %s restored, as %s: %s", d.Iteration, human.Count(int64(d.Files), "file"), d.From,
		strings.Join(d.Names, ", "))
	if int(d.Files) > len(d.Names) {
		text += fmt.Sprintf(" and %d more", int(d.Files)-len(d.Names))
	}
	return text
}

// activity returns what an agent does as one line, and since when. An event from before the
// first one to show is not current.
func (c *commands) activity(e *perdure.Event, first time.Time) (text string, since time.Time, ok bool) {
	var a loop.Activity
	if e.Time.Before(first) || time.Since(e.Time) > staleActivity || json.Unmarshal(e.Data, &a) != nil {
		return "", since, false
	}
	doing := cmp.Or(a.Waiting, a.Call, a.Message, "is working")
	if a.Waiting != "" {
		doing = "waiting: " + doing
	}
	parts := []string{fmt.Sprintf("iteration %d: %s: %s", a.Iteration, a.Agent, doing)}
	if a.Files > 0 {
		parts = append(parts, human.Count(a.Files, "file"))
	}
	if a.Tokens > 0 {
		parts = append(parts, human.Compact(a.Tokens)+" tokens")
	}
	if a.CostUSD != nil {
		parts = append(parts, human.Dollars(*a.CostUSD))
	}
	return c.Err.Safe(strings.Join(parts, " · ")), e.Time.Add(-time.Duration(a.ElapsedMS) * time.Millisecond), true
}

// staleActivity is the age from which an activity is not shown any more: the log of a loop that
// is followed later begins with old ones.
const staleActivity = time.Minute

// process returns words for a process; 0 is one that is not known.
func process(pid int, program string) string {
	if pid == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("process %d (%s)", pid, program)
}

// denied returns the text for a call that the agent's permissions denied.
func denied(d *eventData) string {
	text := d.where() + "denied by the agent's permissions: " + d.Target
	if d.Hint != "" {
		text += " (" + d.Hint + ")"
	}
	return text
}

// agentWaits returns the text for a request that the agent retries by itself.
func agentWaits(d *eventData) string {
	text := d.where() + d.Agent + " waits"
	if d.Until != "" {
		text += " until " + localDay(d.Until, time.Now())
	}
	switch {
	case d.Attempt > 0 && d.Of > 0:
		text += fmt.Sprintf(", retry %d of %d", d.Attempt, d.Of)
	case d.Attempt > 0:
		text += fmt.Sprintf(", retry %d", d.Attempt)
	}
	return text + ": " + d.Message
}

// where returns the beginning of the line of an event in an iteration.
func (d *eventData) where() string {
	if d.Iteration == 0 {
		return "baseline: "
	}
	return fmt.Sprintf("iteration %d: ", d.Iteration)
}

// withheld returns the text for variables of the environment that are not set, or that agents
// and checks do not get, with some of the names.
func withheld(d *eventData) string {
	if len(d.Unset) > 0 {
		return "warning: --env or loop.env names variables that are not set: " + strings.Join(d.Unset, ", ")
	}
	text := fmt.Sprintf("environment: %s not passed to agents and checks", human.Count(d.Variables, "variable"))
	if len(d.Names) > 0 {
		text += ", among them " + strings.Join(d.Names, ", ") + "; --env NAME or the setting loop.env passes a variable"
	}
	return text
}

func measured(d *eventData) string {
	text := fmt.Sprintf("iteration %d: check ", d.Iteration)
	switch {
	case d.Passed:
		text += "passes"
	case d.Failing > 0:
		text += "fails (" + human.Count(d.Failing, "test") + ")"
	default:
		text += "fails"
	}
	switch {
	case d.Quality == nil:
	case d.Void:
		text += fmt.Sprintf(", quality %d%% is void", *d.Quality)
	default:
		text += fmt.Sprintf(", quality %d%%", *d.Quality)
	}
	if d.Regressions > 0 {
		text += ", " + human.Count(d.Regressions, "regression")
	}
	return text
}

// madeWorktree returns the text for the worktree of the loop.
func madeWorktree(d *eventData) string {
	text := fmt.Sprintf("worktree %s, with the files of commit %s", d.Path, branch.Short(d.Commit))
	if d.Ignored > 0 {
		text += " and " + human.Count(d.Ignored, "ignored file")
	}
	if d.Uncommitted > 0 {
		text += fmt.Sprintf("; without %s of %s", human.Count(d.Uncommitted, "uncommitted change"), d.Folder)
	}
	return text
}

// committed returns the text for a commit of the loop.
func committed(d *eventData) string {
	text := fmt.Sprintf("commit %s on %s", branch.Short(d.Commit), d.Branch)
	if d.Final {
		return text + ": " + d.Text
	}
	return d.where() + text
}

// localDay returns a time with its date, unless it is on the day of now.
func localDay(text string, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return text
	case t.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly):
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}
