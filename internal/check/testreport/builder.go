package testreport

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/perdure/perdure/internal/text/clip"
)

// builder collects the tests of a report within the limits.
type builder struct {
	cfg    Config
	report Report
	at     map[string]int  // identity to index in report.Tests
	last   map[string]int  // identity without a number to the last number given
	noted  map[Broken]bool // suite and kind
}

func newBuilder(format Format, cfg Config) (*builder, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &builder{
		cfg:    cfg,
		report: Report{Format: format, Complete: true, Tests: []Test{}},
		at:     make(map[string]int),
		last:   make(map[string]int),
		noted:  make(map[Broken]bool),
	}, nil
}

// add appends a test under its identity, with a number if the identity is taken.
func (b *builder) add(t Test, line int) (index int, err error) {
	t.ID = printable(t.ID)
	if len(t.ID) > b.cfg.MaxIdentity {
		return 0, &LimitError{Limit: "max identity", Max: b.cfg.MaxIdentity, Line: line}
	}
	if len(b.report.Tests) >= b.cfg.MaxTests {
		return 0, &LimitError{Limit: "max tests", Max: b.cfg.MaxTests, Line: line}
	}
	t.ID = b.unique(t.ID)
	t.Suite, t.Name, t.File = printable(t.Suite), printable(t.Name), printable(t.File)
	b.at[t.ID] = len(b.report.Tests)
	b.report.Tests = append(b.report.Tests, t)
	return len(b.report.Tests) - 1, nil
}

func (b *builder) unique(id string) string {
	if _, taken := b.at[id]; !taken {
		return id
	}
	for n := max(b.last[id], 1) + 1; ; n++ {
		numbered := fmt.Sprintf("%s#%d", id, n)
		if _, taken := b.at[numbered]; !taken {
			b.last[id] = n
			return numbered
		}
	}
}

// merge adds a test, or a further outcome of a test that the runner repeated: the worse
// one stays.
func (b *builder) merge(t Test, line int) error {
	i, known := b.at[printable(t.ID)]
	if !known {
		_, err := b.add(t, line)
		return err
	}
	old := &b.report.Tests[i]
	old.Duration += t.Duration
	old.Flaky = old.Flaky || t.Flaky
	if weight(t.Outcome) > weight(old.Outcome) {
		old.Outcome, old.Message = t.Outcome, t.Message
	}
	return nil
}

// weight orders outcomes from good to bad.
func weight(o Outcome) int {
	return slices.Index([]Outcome{"", Passed, XPass, XFail, Todo, Skipped, Unfinished, Failed}, o)
}

// broken records a suite that could not run, once for each kind.
func (b *builder) broken(suite string, kind Kind, msg string) error {
	suite = printable(suite)
	key := Broken{Suite: suite, Kind: kind}
	if b.noted[key] {
		return nil
	}
	b.noted[key] = true
	if len(b.report.Broken) >= b.cfg.MaxTests {
		return &LimitError{Limit: "max tests", Max: b.cfg.MaxTests}
	}
	b.report.Broken = append(b.report.Broken, Broken{Suite: suite, Kind: kind, Message: clipped(msg, b.cfg.MaxMessage)})
	return nil
}

// incomplete records that the end record of a suite, or with an empty name of the run, is
// missing. The first reason stays.
func (b *builder) incomplete(suite, reason string) error {
	reason = clipped(reason, b.cfg.MaxMessage)
	if b.report.Complete {
		b.report.Complete, b.report.Reason = false, reason
	}
	return b.broken(suite, Incomplete, reason)
}

// join joins the non-empty parts of an identity.
func join(sep string, parts ...string) string {
	kept := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" })
	return strings.Join(kept, sep)
}

// printable replaces characters that are not text by \xNN, so that identities can be
// stored and shown.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }) < 0 {
		return s
	}
	var w strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && n == 1) || unicode.IsControl(r) {
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&w, `\x%02x`, c)
			}
		} else {
			w.WriteString(s[i : i+n])
		}
		i += n
	}
	return w.String()
}

// clipped returns the beginning of a message as text without colours and control characters,
// at most limit bytes.
func clipped(s string, limit int) string {
	s = clip.Prefix(s, 4*limit)
	s = ansi.Strip(strings.ToValidUTF8(s, "?"))
	s = strings.Map(func(r rune) rune {
		if r == '\r' || (unicode.IsControl(r) && r != '\n' && r != '\t') {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(clip.Prefix(strings.TrimSpace(s), limit))
}

// message collects the beginning of a test's output.
type message struct{ text []byte }

func (m *message) add(s string, limit int) {
	if room := 4*limit - len(m.text); room > 0 {
		m.text = append(m.text, s[:min(room, len(s))]...)
	}
}
