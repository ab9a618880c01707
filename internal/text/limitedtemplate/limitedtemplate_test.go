package limitedtemplate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/perdure/perdure/internal/text/limitedtemplate"
)

type data struct {
	Name  string
	Names []string
	Count int
	At    time.Time
}

func full() data {
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("name %d", i)
	}
	return data{"n", names, 3, time.Date(2026, 11, 11, 11, 11, 11, 0, time.UTC)}
}

func execute(ctx context.Context, text string) (string, error) {
	s := limitedtemplate.New(template.FuncMap{"upper": strings.ToUpper,
		"twice": func(text string) string { return text + text }})
	if err := s.Add("t", text); err != nil {
		return "", err
	}
	return s.Execute(ctx, "t", full())
}

// doubled is a template that doubles a variable many times by an expression.
func doubled(by string) string {
	return `{{$x := "1234567890"}}` + strings.Repeat("{{$x = "+by+"}}", 60)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat("{{range $.Names}}", 5) + strings.Repeat("{{end}}", 5)
	for name, text := range map[string]string{
		"a range that writes nothing":    "{{range 1000000000000000000}}{{end}}",
		"a range with a comment":         "{{range 1000000000000000000}}{{/* */}}{{end}}",
		"a range that continues":         "{{range 1000000000000000000}}{{continue}}{{end}}",
		"a range in a condition":         "{{if .Name}}{{with .Name}}{{range 1000000000000000000}}{{end}}{{end}}{{end}}",
		"a range in an else":             "{{if .Nothing}}{{else}}{{range 1000000000000000000}}{{end}}{{end}}",
		"nested ranges":                  nested,
		"a template that calls itself":   `{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`,
		"templates that branch":          branching(40),
		"a block in a range":             `{{range 1000000000000}}{{block "b" .}}{{end}}{{end}}`,
		"output":                         `{{$x := printf "%999d" 1}}{{range 1000000}}{{$x}}{{end}}`,
		"text":                           strings.Repeat("x", limitedtemplate.MaxSource+1),
		"print":                          doubled("print $x $x"),
		"println":                        doubled("println $x $x"),
		"printf":                         doubled(`printf "%s%s" $x $x`),
		"html":                           doubled(`html $x "<>"  $x`),
		"js":                             doubled(`js $x $x`),
		"urlquery":                       doubled(`urlquery $x $x`),
		"a pipeline":                     doubled("$x | print $x"),
		"a function in a variable":       doubled(`twice $x`),
		"in parentheses":                 doubled("print (print $x $x) (print $x $x)"),
		"join":                           doubled("join $.Names $x"),
		"a width":                        `{{printf "%1000000d" 1}}`,
		"a precision":                    `{{printf "%.1000000f" 1.0}}`,
		"a width of an argument":         `{{printf "%*d" 1000000 1}}`,
		"many verbs":                     `{{$x := printf "%999d" 1}}{{printf "` + strings.Repeat("%[1]s", 9000) + `" $x}}`,
		"a function in a long range":     `{{range 1000000000000}}{{$x := upper "a"}}{{end}}`,
		"the step function, with a sign": `{{range 1000000000000}}{{perdure_step -1000}}{{end}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := execute(t.Context(), text); err == nil || !errors.Is(err, limitedtemplate.ErrLimit) &&
				!strings.Contains(err.Error(), limitedtemplate.ErrLimit.Error()) && !strings.Contains(err.Error(), "depth") &&
				!strings.Contains(err.Error(), "can't evaluate") {
				t.Errorf("%d bytes, error %v", len(out), err)
			}
		})
	}
}

// A format that prints nothing of its argument counts the text that fmt makes of it.
func TestArgumentsCount(t *testing.T) {
	t.Parallel()
	out, err := execute(t.Context(), `{{range 5000}}{{printf "%.0s" $}}{{end}}`)
	if !errors.Is(err, limitedtemplate.ErrLimit) {
		t.Errorf("%d bytes, error %v", len(out), err)
	}
}

// A template that is not at its limits ends with the context: when that is canceled midway, or
// its deadline has passed.
func TestContext(t *testing.T) {
	t.Parallel()
	reason := errors.New("reason")
	midway, cancel := context.WithCancelCause(t.Context())
	passed, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	t.Cleanup(stop)
	calls := 0
	s := limitedtemplate.New(template.FuncMap{"stop": func() string {
		if calls++; calls == 10 {
			cancel(reason)
		}
		return ""
	}})
	if err := s.Add("t", `{{range 50}}{{$x := stop}}{{end}}`); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Execute(passed, "t", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, error %v with a deadline that has passed", out, err)
	}
	if out, err := s.Execute(midway, "t", nil); !errors.Is(err, reason) || calls != 10 {
		t.Errorf("%q, error %v after %d calls", out, err, calls)
	}
	if _, err := s.Execute(t.Context(), "t", nil); err != nil || calls != 60 {
		t.Errorf("error %v after %d calls", err, calls)
	}
}

// branching returns templates each of which calls the next one twice.
func branching(levels int) string {
	var b strings.Builder
	for i := range levels {
		fmt.Fprintf(&b, `{{define "t%d"}}{{template "t%d"}}{{template "t%d"}}{{end}}`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `{{define "t%d"}}{{end}}{{template "t0"}}`, levels)
	return b.String()
}

// A time that is formatted by its own result doubles at each step.
func TestMethodsTakeLiterals(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{{$x := "11"}}{{$x = .At.Format $x}}`, `{{"11" | .At.Format}}`, `{{$t := .At}}{{$t.Format .Name}}`,
		`{{(.At).Format (print "1" "1")}}`, `{{print (.At.Format .Name)}}`, `{{range .Names}}{{$.At.Format .}}{{end}}`,
		`{{if .At.Format .Name}}{{end}}`, `{{with .At.Format .Name}}{{end}}`, `{{template "t" .At.Format .Name}}`,
		`{{range 1}}{{else}}{{.At.Format .Name}}{{end}}`, `{{((.At.Format .Name)).X}}`,
	} {
		out, err := execute(t.Context(), text)
		if err == nil || !strings.Contains(err.Error(), "a method takes only literals") {
			t.Errorf("%s: %q, error %v", text, out, err)
		}
	}
}

func TestOrdinaryTemplates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a {{.Name}} b": "a n b",
		`{{range $i, $n := .Names}}{{if lt $i 2}}{{$n}},{{end}}{{else}}none{{end}}`: "name 0,name 1,",
		`{{range 3}}{{.}}{{end}}`:                               "012",
		`{{range .Names}}{{break}}{{end}}x`:                     "x",
		`{{define "p"}}({{.}}){{end}}{{template "p" .Count}}`:   "(3)",
		`{{printf "%05.1f|%-4s|%q" 2.25 "a" .Name}}`:            `002.2|a   |"n"`,
		`{{print 1 2 "a"}}{{println "b"}}`:                      "1 2a" + "b\n",
		`{{html "<a>"}} {{js "'"}} {{urlquery "a b"}}`:          `&lt;a&gt; \' a+b`,
		`{{upper (slice .Name 0 1)}}{{len .Names}}`:             "N300",
		`{{.At.UTC.Format "2006"}}`:                             "2026",
		`{{with $x := .Name}}{{$x | printf "%s!"}}{{end}}`:      "n!",
		`{{join (slice .Names 0 2) ", "}}`:                      "name 0, name 1",
		`{{range .Names}}{{end}}{{and .Name 1}}{{eq .Count 3}}`: "1true",
	} {
		if got, err := execute(t.Context(), text); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

// Every template is refused or ends, with bounded output.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"{{range 100000}}{{end}}", `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, "{{range .Names}}{{.}}{{end}}",
		doubled("print $x $x")[:100], `{{block "b" .}}{{.Name}}{{end}}`, `{{printf "%[1]*d" 5}}`, "{{.At.Format \"2006\"}}",
		"{{with .Names}}{{index . 0 | html}}{{end}}", "{{break}}", "{{range 5}}{{continue}}{{else}}{{end}}", "{{- 1 -}}",
		`{{$x := 1}}{{range $i, $y := .Names}}{{$x = $y}}{{end}}{{$x}}`, "{{join .Names .Name}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if out, err := execute(t.Context(), text); err == nil && len(out) > limitedtemplate.MaxOutput {
			t.Errorf("%q: %d bytes", text, len(out))
		}
	})
}
