package hook

import (
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
)

// Outcome is what the handlers of a hook came to.
type Outcome struct {
	// Verdict is the strictest of all; ALLOW without handlers.
	Verdict Verdict
	// Inject is the text for the agent's prompt: that of all handlers in their
	// order, with an empty line between, at most [Config].MaxInject bytes. Cut
	// is set if there was more.
	Inject string
	Cut    bool
	// Recommendations are those of all handlers in their order; at most
	// [MaxRecommendations].
	Recommendations []string
	// Level is the level of reinforcement that the last handler asked for that
	// asked for one; may be empty.
	Level Level
	// Reasons are the reasons of the verdicts other than ALLOW, in order.
	Reasons []Reason
	// Regressions are those that handlers reported, in order.
	Regressions []Regression
	// Records are one for each handler, in order.
	Records []Record
}

// Reason is why a verdict is not ALLOW.
type Reason struct {
	Handler string
	Verdict Verdict
	// Content is the content of the reply, or the fault.
	Content string
}

// Regression is a regression that a handler reported.
type Regression struct {
	Handler  string
	Type     RegressionType
	Severity Severity
	// Content says it in words; Details may be nil.
	Content string
	Details map[string]any
}

// Faults returns the records of the handlers that failed.
func (o Outcome) Faults() []Record {
	var faults []Record
	for _, r := range o.Records {
		if r.Fault != nil {
			faults = append(faults, r)
		}
	}
	return faults
}

// add puts in what one handler came to. Of one that failed only the verdict
// counts.
func (o *Outcome) add(rec Record, reply Reply, maxInject int) {
	o.Records = append(o.Records, rec)
	o.Verdict = Stricter(o.Verdict, rec.Verdict)
	if rec.Verdict == Warn || rec.Verdict == Block {
		content := reply.Content
		if content == "" && rec.Fault != nil {
			content = rec.Fault.Message
		}
		o.Reasons = append(o.Reasons, Reason{Handler: rec.Handler, Verdict: rec.Verdict, Content: content})
	}
	if rec.Fault != nil {
		return
	}
	meta := reply.Metadata
	if meta.RegressionType != "" {
		o.Regressions = append(o.Regressions, Regression{
			Handler: rec.Handler, Type: meta.RegressionType, Severity: meta.Severity, Content: reply.Content,
			Details: meta.Details,
		})
	}
	if meta.Level != "" {
		o.Level = meta.Level
	}
	free := max(0, MaxRecommendations-len(o.Recommendations))
	o.Recommendations = append(o.Recommendations, meta.Recommendations[:min(free, len(meta.Recommendations))]...)
	o.inject(meta.Inject, maxInject)
}

func (o *Outcome) inject(text string, limit int) {
	text = strings.TrimSpace(text)
	if text == "" || o.Cut {
		return
	}
	if o.Inject != "" {
		text = o.Inject + "\n\n" + text
	}
	o.Cut = len(text) > limit
	o.Inject = clip.Bytes(text, limit)
}
