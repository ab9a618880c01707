package loops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// maxFaults is the number of faults that an error names at most.
const maxFaults = 10

// ReadState reads the state of a loop to continue: a document of the schema
// loop-state in JSON or YAML, with or without the persistence extension. An invalid
// member that the loop needs (its ID, task, configuration, the numbers of its
// iterations) is an error with line and column. Other invalid members are kept under
// another name, as in an import, and noted.
func ReadState(name string, text []byte) (json.RawMessage, []Note, error) {
	var notes []Note
	f := &file{src: &Source{Note: func(n Note) { notes = append(notes, n) }}, name: name}
	f.set(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	v, err := f.state()
	if err != nil {
		return nil, nil, err
	}
	s, err := loadShapes()
	if err != nil {
		return nil, nil, err
	}
	x := &fitter{shape: s.state, note: func(kind string, at *jsontree.Value, format string, args ...any) {
		f.note(kind, at.Start, format, args...)
	}}
	if x.current(v) {
		x.complement(v)
	}
	x.given = v.Get("loop_id").Text()
	x.loop = validID(x.given)
	x.note = func(string, *jsontree.Value, string, ...any) {}
	if faults := x.faults(v); len(faults) > 0 {
		return nil, nil, f.refuse(faults...)
	}
	x.note = func(kind string, at *jsontree.Value, format string, args ...any) {
		f.note(kind, at.Start, format, args...)
	}
	out, _, why := x.fit(s.state.root, v, "")
	if why != "" {
		return nil, nil, f.refuse(&jsontree.Error{Offset: v.Start, Msg: "it " + why})
	}
	if x.loop != x.given {
		f.note(Corrected, v.Get("loop_id").Start, "loop_id: %s is not a valid loop ID; it became %s", shown(x.given), x.loop)
	}
	return out.Append(nil), notes, nil
}

// state parses the text.
func (f *file) state() (*jsontree.Value, error) {
	if at := jsontree.InvalidUTF8(f.text); at >= 0 {
		return nil, f.refuse(&jsontree.Error{Offset: at, Msg: "is not UTF-8"})
	}
	if len(f.text) > maxDocument {
		return nil, f.refuse(&jsontree.Error{Msg: fmt.Sprintf("it has %d bytes, the limit is %d", len(f.text), maxDocument)})
	}
	if len(bytes.TrimSpace(f.text)) == 0 {
		return nil, f.refuse(&jsontree.Error{Msg: "it is empty"})
	}
	var v *jsontree.Value
	var problem *jsontree.Error
	if begins := bytes.TrimSpace(f.text)[0]; begins == '{' || begins == '[' {
		var err error
		v, err = jsontree.Parse(f.text, jsontree.Options{})
		problem, _ = errors.AsType[*jsontree.Error](err)
	} else {
		v, problem = parseYAML(f)
	}
	if problem != nil {
		return nil, f.refuse(problem)
	}
	if v.Kind != jsontree.Object {
		return nil, f.refuse(&jsontree.Error{Offset: v.Start, Msg: "want an object, found " + v.Kind.String()})
	}
	return v, nil
}

// refuse returns an error that names faults with their places.
func (f *file) refuse(faults ...*jsontree.Error) error {
	var parts []string
	for _, p := range faults[:min(len(faults), maxFaults)] {
		p.File = f.name
		parts = append(parts, p.In(f.text, p.Offset).Error())
	}
	if more := len(faults) - maxFaults; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "read state of loop", Msg: strings.Join(parts, "; "),
		Hint: "`perdure schema loop-state` prints the schema of the document"}
}

// faults returns the errors in the members that a loop needs.
func (x *fitter) faults(v *jsontree.Value) []*jsontree.Error {
	var faults []*jsontree.Error
	add := func(v *jsontree.Value, format string, args ...any) {
		faults = append(faults, &jsontree.Error{Offset: v.Start, Msg: fmt.Sprintf(format, args...)})
	}
	check := func(sub *schema, member *jsontree.Value, at string) {
		if _, _, why := x.fit(sub, member, at); why != "" {
			add(member, "%s %s", at, why)
		}
	}
	if version := v.Get("version"); version.Is(jsontree.String) && !strings.HasPrefix(version.Text(), "2.") {
		add(version, "version is %s; versions 2.x are supported", shown(version.Text()))
		return faults
	}
	all := x.shape.root.Properties
	for _, key := range []string{"version", "loop_id", "status", "iteration", "task", "completion_criteria"} {
		switch member := v.Get(key); {
		case member == nil:
			if key != "completion_criteria" {
				add(v, "there is no %s", key)
			}
		case key == "loop_id" && member.Kind == jsontree.String:
		default:
			check(all[key], member, key)
		}
	}
	if c := v.Get("configuration"); c.Is(jsontree.Object) {
		for _, m := range c.Members {
			if sub := all["configuration"].Properties[m.Name]; sub != nil {
				check(sub, m.Value, join("configuration", m.Name))
			}
		}
	} else if c != nil {
		check(all["configuration"], c, "configuration")
	}
	history := v.Get("iteration_history")
	if !history.IsNull() && history.Kind != jsontree.Array {
		add(history, "iteration_history is %s, want array", typeOf(history))
	}
	for i, record := range history.List() {
		at := fmt.Sprintf("iteration_history[%d]", i)
		if n := record.Get("iteration"); n == nil {
			add(record, "%s has no iteration", at)
		} else {
			check(x.shape.defs["count"], n, at+".iteration")
		}
	}
	return faults
}
