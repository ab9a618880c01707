package handoff

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/limitedtemplate"
)

//go:embed resume.md.tmpl
var defaultTemplate string

// DefaultTemplate returns the text/template of the resume prompt. Other templates get the
// same data, a [Resume].
func DefaultTemplate() string { return defaultTemplate }

// maxListed is the limit of the lists of a resume prompt, so that thousands of steps do
// not fill the agent's context.
const maxListed = 100

// Resume is the data of a resume prompt.
type Resume struct {
	// Work is that of the ledger or, without one, of the checkpoint.
	Work Work
	// Title and Description are those of the task, if they are known.
	Title, Description string
	// Agent is the agent that continues; can be empty.
	Agent string
	// Verdict is that of the files; nil if they were not compared.
	Verdict *Verdict
	// Contract is that of the task. If it is nil, ContractErr can have the reason.
	Contract    *Contract
	ContractErr error
	// Cut counts the entries that the checkpoint does not show, and Ref says where they
	// are; both are empty for a ledger.
	Cut *Cut
	Ref string
}

// Resume returns the data of a resume prompt, without the verdict and the contract.
func (l *Ledger) Resume() Resume {
	return Resume{Work: l.Work, Title: l.Title, Description: l.Description}
}

// Resume returns the data of a resume prompt, without the verdict and the contract.
func (c *Checkpoint) Resume() Resume { return Resume{Work: c.Work, Cut: c.Cut, Ref: c.Ledger} }

// Prompt returns the prompt, in Markdown, with which an agent continues the work. It uses
// the template text, [DefaultTemplate] if text is empty. The same values always give the
// same prompt. Lists are limited to 100 entries, with the number of the others.
//
// Control characters are shown as signs, and those that reorder text are replaced.
//
// Templates have the functions line (a string on one line), code (a path as code),
// join (as [strings.Join]), latest and next (the last or first entries of a
// list), and more (the number of entries that those leave out). A template other than the
// built-in one is limited in its size, its steps and its output, and methods in it take
// only literals as arguments. It also ends with an error when the context does.
func (r Resume) Prompt(ctx context.Context, text string) (string, error) {
	if text == "" {
		text = defaultTemplate
	}
	functions := template.FuncMap{
		"line": line, "join": strings.Join, "code": code, "latest": latest, "next": next, "more": more,
	}
	if text == defaultTemplate { // whose output is limited by the data
		var b strings.Builder
		err := template.Must(template.New("resume").Funcs(functions).Parse(text)).Execute(&b, r)
		if err != nil {
			return "", &Error{Kind: ErrInvalid, Op: "write resume prompt", Err: err}
		}
		return human.Visible(b.String()), nil
	}
	set := limitedtemplate.New(functions)
	if err := set.Add("resume", text); err != nil {
		return "", &Error{Kind: ErrInvalid, Op: "read template of the resume prompt", Err: err}
	}
	prompt, err := set.Execute(ctx, "resume", r)
	if err != nil {
		return "", &Error{Kind: ErrInvalid, Op: "write resume prompt", Err: err}
	}
	return human.Visible(prompt), nil
}

// line returns a string, of any type, on one line, so that it cannot look like another
// part of the prompt.
func line(text any) string {
	v := reflect.ValueOf(text)
	if v.Kind() != reflect.String {
		return ""
	}
	return clip.OneLine(strings.ToValidUTF8(v.String(), "\uFFFD"))
}

// code formats a path as code in Markdown.
func code(text string) string {
	text = line(text)
	run, longest := 0, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// latest returns the last entries of a list up to the limit, and next the first ones.
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

// CreatedBy returns the author of the checkpoint, "an unknown agent" if it is not known.
func (r Resume) CreatedBy() string {
	return cmp.Or(line(r.Work.Metadata.CreatedBy), "an unknown agent")
}

// Agents returns the previous agents in words.
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

// Files returns the files to read before continuing: those that changed, then those that
// the steps touched, then the other recorded ones.
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
			seen[f.Path] = true // a missing file cannot be read
		}
	}
	for _, path := range slices.Backward(r.Work.Touched()) {
		add(path)
	}
	if r.Verdict != nil {
		for _, f := range r.Verdict.Files { // of no step
			if f.State == Fresh {
				add(f.Path)
			}
		}
	}
	return files
}

// Stale reports whether the files are known to have changed.
func (r Resume) Stale() bool { return r.Verdict != nil && r.Verdict.Summary == Stale }

// Missing returns why there is no contract, "" if there is one or none is named.
func (r Resume) Missing() string {
	if r.Contract != nil || r.ContractErr == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](r.ContractErr); ok && e.Msg != "" {
		return line(e.Msg)
	}
	return line(r.ContractErr.Error())
}
