package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/perdure/perdure/internal/text/nearest"
)

// maxPredicateBytes bounds a predicate.
const maxPredicateBytes = 1000

// Outcome is how an earlier task ended, as predicates see it.
type Outcome struct {
	// ID is the name of a planned task; empty for a part.
	ID string `expr:"id"`
	// State is completed, skipped, failed or cancelled; empty for a task that
	// there is not.
	State string `expr:"state"`
	// Text is the result; empty without one.
	Text string `expr:"text"`
	// Error is why there is no result.
	Error string `expr:"error"`
}

// StateSkipped is the state in a predicate of a task whose own predicate did not
// hold.
const StateSkipped = "skipped"

// The names that predicates know in addition to earlier planned tasks.
const (
	nameResults  = "results"
	namePrevious = "previous"
)

// Predicate is a compiled condition: one line of the expression language of
// github.com/expr-lang/expr, typed, over the outcomes of earlier tasks. It is
// safe for concurrent use.
type Predicate struct {
	source  string
	program *vm.Program
	ids     []string
}

// Compile compiles a condition. ids are the names of the tasks that it
// may ask about. The error names the column, counted from 1.
func Compile(source string, ids []string) (*Predicate, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("it is empty")
	case len(source) > maxPredicateBytes:
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(source), maxPredicateBytes)
	case !utf8.ValidString(source):
		return nil, errors.New("it is not valid UTF-8")
	}
	if at := strings.IndexAny(source, "\r\n"); at >= 0 {
		return nil, fmt.Errorf("column %d: it has to be one line", 1+utf8.RuneCountInString(source[:at]))
	}
	p := &Predicate{source: source, ids: ids}
	var err error
	// The time is not part of a condition: it would not be the same on resume.
	p.program, err = expr.Compile(source, expr.Env(p.env(nil)), expr.AsBool(), expr.DisableBuiltin("now"))
	if err != nil {
		return nil, p.fault(err)
	}
	return p, nil
}

// fault returns an error of one line: the problem of a condition and its place.
func (p *Predicate) fault(err error) error {
	placed, ok := errors.AsType[*file.Error](err)
	if !ok {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("column 1: %s", strings.TrimSpace(first))
	}
	msg := placed.Message
	if name, ok := strings.CutPrefix(msg, "unknown name "); ok {
		known := append([]string{nameResults, namePrevious}, p.ids...)
		if near, ok := nearest.ByEdits(name, known); ok {
			msg += fmt.Sprintf(", did you mean %q?", near)
		} else {
			msg += "; there is " + strings.Join(known, ", ")
		}
	}
	return fmt.Errorf("column %d: %s", placed.Column+1, msg)
}

// env is what a condition sees: all outcomes in their order, the last one, and
// those of planned tasks by their names.
func (p *Predicate) env(results []Outcome) map[string]any {
	env := map[string]any{nameResults: append([]Outcome{}, results...), namePrevious: Outcome{}}
	for _, id := range p.ids {
		env[id] = Outcome{ID: id}
	}
	for _, r := range results {
		env[namePrevious] = r
		if r.ID != "" && slices.Contains(p.ids, r.ID) {
			env[r.ID] = r
		}
	}
	return env
}

// Holds evaluates the condition.
func (p *Predicate) Holds(results []Outcome) (bool, error) {
	v, err := expr.Run(p.program, p.env(results))
	if err != nil {
		return false, fmt.Errorf("evaluate condition %q: %w", p.source, p.fault(err))
	}
	yes, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("evaluate condition %q: it is %v, not true or false", p.source, v)
	}
	return yes, nil
}

// nameable returns why a word cannot be the name of a planned task, "" if
// it can.
func nameable(id string) string {
	const longest = 40
	switch {
	case id == "":
		return "it is empty"
	case len(id) > longest:
		return fmt.Sprintf("it has %d bytes, the limit is %d", len(id), longest)
	}
	for i, r := range id {
		letter := r >= 'a' && r <= 'z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return fmt.Sprintf("%q is not a name of small letters, digits and _ that begins with a letter", id)
		}
	}
	return ""
}

// askable returns why a name cannot be used in conditions, "" if it
// can.
func askable(id string) string {
	reserved := []string{nameResults, namePrevious, "not", "in", "and", "or", "true", "false", "nil", "let", "if", "else",
		"env", "contains", "matches", "starts", "ends", "startswith", "endswith"}
	if slices.Contains(builtin.Names, id) || slices.Contains(reserved, id) {
		return fmt.Sprintf("%q has a meaning of its own in conditions; take another name", id)
	}
	return ""
}

// String is the condition as it was written.
func (p *Predicate) String() string { return p.source }
