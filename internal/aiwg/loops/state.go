package loops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// maxFaults bounds how many faults an error names.
const maxFaults = 10

// ReadState reads the state of a loop that is to go on: a document of the schema
// loop-state in JSON or YAML, with or without the persistence extension. What the
// loop would act on (what it is, its task, its configuration, the numbers of its
// iterations) has to be right; the error names what is not, with line and column.
// What else does not fit is kept beside, as an import does it, and noted.
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
	x := &fitter{shape: s.state, given: v.Get("loop_id").Text()}
	x.loop = x.given
	if len(x.loop) > maxIDBytes || !idPattern().MatchString(x.loop) {
		x.loop = idFor(x.given, x.given)
	}
	x.note = func(string, *jsontree.Value, string, ...any) {}
	if faults := x.demands(v); len(faults) > 0 {
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
		f.note(Corrected, v.Get("loop_id").Start, "loop_id: %s is not of the form that IDs of loops have; it became %s",
			shown(x.given), x.loop)
	}
	return out.Append(nil), notes, nil
}

// state parses the text, all of it.
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
		errors.As(err, &problem)
	} else {
		v, problem = parseYAML(f)
	}
	if problem != nil {
		return nil, f.refuse(problem)
	}
	if v.Kind != jsontree.Object {
		return nil, f.refuse(&jsontree.Error{Offset: v.Start, Msg: "it is " + typeOf(v) + ", and has to be an object"})
	}
	return v, nil
}

// refuse is an error that names faults with their places.
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
		Hint: "`perdure schema loop-state` says what such a document holds"}
}

// demands tells what is wrong with the members that a loop acts on.
func (x *fitter) demands(v *jsontree.Value) []*jsontree.Error {
	var faults []*jsontree.Error
	wrong := func(sub *schema, member *jsontree.Value, at string) {
		if _, _, why := x.fit(sub, member, at); why != "" {
			faults = append(faults, &jsontree.Error{Offset: member.Start, Msg: at + " " + why})
		}
	}
	if version := v.Get("version"); version != nil && version.Kind == jsontree.String &&
		!strings.HasPrefix(version.Scalar(), "2.") {
		return []*jsontree.Error{{Offset: version.Start, Msg: "version is " + shown(version.Scalar()) +
			"; versions 2.x are read"}}
	}
	all := x.shape.root.Properties
	for _, key := range []string{"version", "loop_id", "status", "iteration", "task", "completion_criteria"} {
		switch member := v.Get(key); {
		case member == nil:
			if key != "completion_criteria" {
				faults = append(faults, &jsontree.Error{Offset: v.Start, Msg: "there is no " + key})
			}
		case key == "loop_id" && member.Kind == jsontree.String:
		default:
			wrong(all[key], member, key)
		}
	}
	if c := v.Get("configuration"); c != nil && c.Kind == jsontree.Object {
		for _, m := range c.Members {
			if sub := all["configuration"].Properties[m.Name]; sub != nil {
				wrong(sub, m.Value, join("configuration", m.Name))
			}
		}
	} else if c != nil {
		wrong(all["configuration"], c, "configuration")
	}
	history := v.Get("iteration_history")
	if history != nil && history.Kind != jsontree.Array && history.Kind != jsontree.Null {
		faults = append(faults, &jsontree.Error{Offset: history.Start, Msg: "iteration_history is " + typeOf(history) +
			", and has to be array"})
	}
	for i, record := range history.List() {
		at := "iteration_history[" + strconv.Itoa(i) + "]"
		switch n := record.Get("iteration"); {
		case n == nil:
			faults = append(faults, &jsontree.Error{Offset: record.Start, Msg: at + " has no iteration"})
		default:
			wrong(x.shape.defs["count"], n, at+".iteration")
		}
	}
	return faults
}
