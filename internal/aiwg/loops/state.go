package loops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure"
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
	f := &file{src: &Source{Note: func(n Note) { notes = append(notes, n) }}, name: name,
		text: bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))}
	v, err := f.state()
	if err != nil {
		return nil, nil, err
	}
	s, err := loadShapes()
	if err != nil {
		return nil, nil, err
	}
	x := &fitter{shape: s.state, given: v.get("loop_id").says()}
	x.loop = x.given
	if len(x.loop) > maxIDBytes || !idPattern().MatchString(x.loop) {
		x.loop = idFor(x.given, x.given)
	}
	x.note = func(string, *value, string, ...any) {}
	if faults := x.demands(v); len(faults) > 0 {
		return nil, nil, f.refuse(faults)
	}
	x.note = func(kind string, at *value, format string, args ...any) { f.note(kind, at.off, format, args...) }
	out, _, why := x.fit(s.state.root, v, "")
	if why != "" {
		return nil, nil, f.refuse([]fault{{v.off, "it " + why}})
	}
	if x.loop != x.given {
		f.note(Corrected, v.get("loop_id").off, "loop_id: %s is not of the form that IDs of loops have; it became %s",
			shown(x.given), x.loop)
	}
	return out.raw(), notes, nil
}

// state parses the text, all of it.
func (f *file) state() (*value, error) {
	for at := 0; at < len(f.text); {
		c, size := utf8.DecodeRune(f.text[at:])
		if c == utf8.RuneError && size == 1 {
			return nil, f.refuse([]fault{{at, "is not UTF-8"}})
		}
		at += size
	}
	if len(f.text) > maxDocument {
		return nil, f.refuse([]fault{{0, fmt.Sprintf("it has %d bytes, the limit is %d", len(f.text), maxDocument)}})
	}
	if len(bytes.TrimSpace(f.text)) == 0 {
		return nil, f.refuse([]fault{{0, "it is empty"}})
	}
	var v *value
	var problem *fault
	if begins := bytes.TrimSpace(f.text)[0]; begins == '{' || begins == '[' {
		v, problem = parse(f.text)
	} else {
		v, problem = parseYAML(f)
	}
	if problem != nil {
		return nil, f.refuse([]fault{*problem})
	}
	if v.kind != '{' {
		return nil, f.refuse([]fault{{v.off, "it is " + v.is() + ", and has to be an object"}})
	}
	return v, nil
}

// refuse is an error that names faults with their places.
func (f *file) refuse(faults []fault) error {
	var parts []string
	for _, p := range faults[:min(len(faults), maxFaults)] {
		line, column := f.place(min(p.off, len(f.text)))
		parts = append(parts, fmt.Sprintf("%s:%d:%d: %s", f.name, line, column, p.what))
	}
	if more := len(faults) - maxFaults; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "read state of loop", Msg: strings.Join(parts, "; "),
		Hint: "`perdure schema loop-state` says what such a document holds"}
}

// demands tells what is wrong with the members that a loop acts on.
func (x *fitter) demands(v *value) []fault {
	var faults []fault
	wrong := func(sub *schema, member *value, at string) {
		if _, _, why := x.fit(sub, member, at); why != "" {
			faults = append(faults, fault{member.off, at + " " + why})
		}
	}
	if version := v.get("version"); version != nil && version.kind == '"' && !strings.HasPrefix(version.text, "2.") {
		return []fault{{version.off, "version is " + shown(version.text) + "; versions 2.x are read"}}
	}
	all := x.shape.root.Properties
	for _, key := range []string{"version", "loop_id", "status", "iteration", "task", "completion_criteria"} {
		switch member := v.get(key); {
		case member == nil:
			if key != "completion_criteria" {
				faults = append(faults, fault{v.off, "there is no " + key})
			}
		case key == "loop_id" && member.kind == '"':
		default:
			wrong(all[key], member, key)
		}
	}
	if c := v.get("configuration"); c != nil && c.kind == '{' {
		for i, key := range c.keys {
			if sub := all["configuration"].Properties[key]; sub != nil {
				wrong(sub, c.vals[i], join("configuration", key))
			}
		}
	} else if c != nil {
		wrong(all["configuration"], c, "configuration")
	}
	history := v.get("iteration_history")
	if history != nil && history.kind != '[' && history.kind != 'n' {
		faults = append(faults, fault{history.off, "iteration_history is " + history.is() + ", and has to be array"})
	}
	for i, record := range history.list() {
		at := "iteration_history[" + strconv.Itoa(i) + "]"
		switch n := record.get("iteration"); {
		case n == nil:
			faults = append(faults, fault{record.off, at + " has no iteration"})
		default:
			wrong(x.shape.defs["count"], n, at+".iteration")
		}
	}
	return faults
}
