package handoff

import (
	"cmp"
	_ "embed"
	"errors"
	"reflect"
	"strings"
	"text/template"

	"github.com/perdure/perdure/internal/text/clip"
)

//go:embed resume.md.tmpl
var defaultTemplate string

// DefaultTemplate returns the text/template of the resume prompt; a template of
// one's own gets the same data, a [Resume].
func DefaultTemplate() string { return defaultTemplate }

// maxListed bounds the lists of a resume prompt, so that a ledger of thousands
// of steps does not fill the context of the agent that is to continue.
const maxListed = 100

// Resume is what a resume prompt is made of.
type Resume struct {
	// Work is that of the ledger or, when there is none, of the checkpoint.
	Work Work
	// Title and Description are those of the task, as far as they are known.
	Title, Description string
	// Agent is who is to continue; may be empty.
	Agent string
	// Verdict is that of the files; nil when they were not judged.
	Verdict *Verdict
	// Contract is that of the task. When it is nil, ContractErr may say why.
	Contract    *Contract
	ContractErr error
	// Cut counts what the checkpoint does not show and Ref says where it is;
	// both are empty for a ledger.
	Cut *Cut
	Ref string
}

// Resume returns what a resume prompt is made of, but for the verdict and the
// contract.
func (l *Ledger) Resume() Resume {
	return Resume{Work: l.Work, Title: l.Title, Description: l.Description}
}

// Resume returns what a resume prompt is made of, but for the verdict and the
// contract.
func (c *Checkpoint) Resume() Resume { return Resume{Work: c.Work, Cut: c.Cut, Ref: c.Ledger} }

// Prompt writes the prompt, in Markdown, with which an agent continues the work:
// by the given template, [DefaultTemplate] when it is empty. The same values
// always give the same text. Lists are limited to 100 entries, with the number of
// the others.
//
// Templates have the functions line (a text on one line), code (a path as code),
// join (as [strings.Join]), latest and next (the last or first entries of a
// list), and more (how many those leave out).
func (r Resume) Prompt(text string) (string, error) {
	if text == "" {
		text = defaultTemplate
	}
	t, err := template.New("resume").Funcs(template.FuncMap{
		"line": line, "join": strings.Join, "code": code, "latest": latest, "next": next, "more": more,
	}).Parse(text)
	if err != nil {
		return "", &Error{Kind: ErrInvalid, Op: "read template of the resume prompt", Err: err}
	}
	var b strings.Builder
	if err := t.Execute(&b, r); err != nil {
		return "", &Error{Kind: ErrInvalid, Op: "write resume prompt", Err: err}
	}
	return b.String(), nil
}

// line puts a text on one line, so that it cannot pretend to be other parts of
// the prompt.
func line(text any) string {
	var s string
	switch t := text.(type) {
	case string:
		s = t
	case Phase:
		s = string(t)
	case Status:
		s = string(t)
	case Runner:
		s = string(t)
	case Reason:
		s = string(t)
	case Timing:
		s = string(t)
	case ContractType:
		s = string(t)
	}
	return clip.OneLine(strings.ToValidUTF8(s, "\uFFFD"))
}

// code writes a path so that Markdown leaves it alone.
func code(text string) string {
	text = line(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// latest returns the last entries of a list, as many as a prompt may have, and
// next the first ones.
func latest(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(max(0, v.Len()-maxListed), v.Len()).Interface()
}

func next(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(v.Len(), maxListed)).Interface()
}

// more counts the entries that latest and next leave out.
func more(list any) int { return max(0, reflect.ValueOf(list).Len()-maxListed) }

// CreatedBy is who wrote the checkpoint, "an unknown agent" when it does not say.
func (r Resume) CreatedBy() string {
	return cmp.Or(line(r.Work.Metadata.CreatedBy), "an unknown agent")
}

// Agents are those who worked on the task before, in words.
func (r Resume) Agents() string {
	var names []string
	for _, name := range append(append([]string{}, r.Work.Metadata.PreviousAgents...), r.Work.Metadata.CreatedBy) {
		if name = line(name); name != "" && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "another agent"
	}
	return strings.Join(names, ", ")
}

// Files are those to read before going on: those that moved first, then all that
// the steps touched, then what was touched besides.
func (r Resume) Files() []string {
	var files []string
	seen := make(map[string]bool)
	add := func(path string) {
		if !seen[path] && len(files) < maxListed {
			seen[path] = true
			files = append(files, path)
		}
	}
	if r.Verdict != nil {
		for _, f := range r.Verdict.Moved() {
			if f.State != Deleted && f.State != Missing {
				add(f.Path)
			}
			seen[f.Path] = true // what is gone cannot be read
		}
	}
	touched := r.Work.Touched()
	for i := len(touched) - 1; i >= 0; i-- {
		add(touched[i])
	}
	if r.Verdict != nil {
		for _, f := range r.Verdict.Files { // of no step yet
			if f.State == Fresh {
				add(f.Path)
			}
		}
	}
	return files
}

// Stale tells whether the files are known to have changed.
func (r Resume) Stale() bool { return r.Verdict != nil && r.Verdict.Summary == Stale }

// Missing is why there is no contract; "" when there is one, or none is named.
func (r Resume) Missing() string {
	if r.Contract != nil || r.ContractErr == nil {
		return ""
	}
	var e *Error
	if errors.As(r.ContractErr, &e) && e.Msg != "" {
		return line(e.Msg)
	}
	return line(r.ContractErr.Error())
}
