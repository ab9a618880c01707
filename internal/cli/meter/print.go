package meter

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/internal/meter"
	"github.com/perdure/perdure/internal/text/human"
)

// summary is the schema meter-summary.
type summary struct {
	Seconds float64 `json:"seconds"`
	total
	Models  []modelTotal `json:"models"`
	Context *fill        `json:"context"`
	Highest *int         `json:"highest_context_percent"`

	Overflows    int        `json:"overflows"`
	RateLimits   int        `json:"rate_limits"`
	LimitedUntil *time.Time `json:"rate_limited_until"`
	Failed       int        `json:"failed"`
	Cut          int        `json:"cut"`
	Unread       int        `json:"unread"`
	Others       int        `json:"other_requests"`
}

type total struct {
	meter.Total
	CostUSD *float64 `json:"cost_usd"`
}

type modelTotal struct {
	Model string `json:"model"`
	total
}

type fill struct {
	Used      int64  `json:"used"`
	Window    *int64 `json:"window"`
	Percent   *int   `json:"percent"`
	Estimated bool   `json:"estimated"`
}

func totalOf(t meter.Total) total {
	out := total{Total: t}
	if micros := t.Cost(); micros != nil {
		out.CostUSD = new(float64(*micros) / 1e6)
	}
	return out
}

func summaryOf(s *meter.Summary, took time.Duration) summary {
	out := summary{Seconds: took.Seconds(), total: totalOf(s.Total), Models: []modelTotal{}, Highest: s.Highest,
		Overflows: s.Overflows, RateLimits: s.RateLimits, Failed: s.Failed, Cut: s.Cut, Unread: s.Unread, Others: s.Others}
	for _, m := range s.Models {
		out.Models = append(out.Models, modelTotal{Model: m.Model, total: totalOf(m.Total)})
	}
	if !s.LimitedUntil.IsZero() {
		out.LimitedUntil = new(s.LimitedUntil.UTC())
	}
	if c := s.Context; c != nil {
		out.Context = &fill{Used: c.Used, Estimated: c.Estimated}
		if c.Window > 0 {
			out.Context.Window, out.Context.Percent = &c.Window, new(int(100*c.Used/c.Window))
		}
	}
	return out
}

// print writes the summary to standard error; standard output is the program's.
func (c *commands) print(s *meter.Summary, took time.Duration, upstreams map[meter.Provider]string) error {
	if c.JSON {
		line, err := json.Marshal(summaryOf(s, took))
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Err, "%s\n", line)
		return nil
	}
	c.Note("metered %s in %s", human.Count(int64(s.Requests), "request"), human.Duration(took))
	if s.Requests == 0 {
		c.none(s, upstreams)
		return nil
	}
	w := tabwriter.NewWriter(c.Err, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(w, strings.Join(append(table(s), facts(s)...), "\n")+"\n") // c.Err keeps the error
	return w.Flush()
}

// none says why nothing may have been metered.
func (c *commands) none(s *meter.Summary, upstreams map[meter.Provider]string) {
	if s.Others > 0 {
		c.Note("%s did not ask a model", human.Count(int64(s.Others), "request"))
		return
	}
	c.Hint("the program may have its own address of the provider, or be logged in to a subscription; "+
		"it was to send its requests through the variables OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL "+
		"(to %s, %s, %s)", upstreams[meter.OpenAI], upstreams[meter.Anthropic], upstreams[meter.Gemini])
}

// table returns the sums of the models as lines of cells.
func table(s *meter.Summary) []string {
	lines := []string{"  model\trequests\tinput\tcached\toutput\tcost"}
	add := func(name string, t *meter.Total) {
		cost := "unknown"
		if micros := t.Cost(); micros != nil {
			cost = human.Dollars(float64(*micros) / 1e6)
		} else if t.CostMicros > 0 {
			cost = "unknown, at least " + human.Dollars(float64(t.CostMicros)/1e6)
		}
		lines = append(lines, strings.Join([]string{"  " + human.OneLine(name), humanize.Comma(int64(t.Requests)),
			humanize.Comma(t.InputTokens), humanize.Comma(t.CachedTokens), humanize.Comma(t.OutputTokens), cost}, "\t"))
	}
	for i := range s.Models {
		add(s.Models[i].Model, &s.Models[i].Total)
	}
	if len(s.Models) > 1 {
		add("all", &s.Total)
	}
	return lines
}

// facts returns what else is known, as lines of cells.
func facts(s *meter.Summary) []string {
	var lines []string
	add := func(name, format string, args ...any) {
		lines = append(lines, "  "+name+"\t"+fmt.Sprintf(format, args...))
	}
	if c := s.Context; c != nil {
		text := humanize.Comma(c.Used) + " tokens, size of the window unknown"
		if c.Window > 0 {
			text = fmt.Sprintf("%d %% of %s tokens", 100*c.Used/c.Window, humanize.Comma(c.Window))
		}
		if s.Highest != nil {
			text += fmt.Sprintf(", %d %% at most", *s.Highest)
		}
		if c.Estimated {
			text += " (estimated)"
		}
		add("context", "%s", text)
	}
	limits := fmt.Sprint(s.RateLimits)
	if !s.LimitedUntil.IsZero() {
		limits += ", the last until " + human.Stamp(s.LimitedUntil)
	}
	add("overflows", "%d", s.Overflows)
	add("rate limits", "%s", limits)
	for _, n := range []struct {
		name string
		n    int
		text string
	}{
		{"failed", s.Failed, "requests with another error"},
		{"cut", s.Cut, "answers that ended before their end"},
		{"estimated", s.Estimated, "answers without a usage from the provider"},
		{"not read", s.Unread, "answers whose encoding or speed the meter could not read"},
		{"others", s.Others, "requests that do not ask a model"},
	} {
		if n.n > 0 {
			add(n.name, "%d\t%s", n.n, n.text)
		}
	}
	return lines
}
