package handoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Projections are measured after every entry, so writing JSON is done here and
// not by reflection: a tenth of the time. The result is what encoding/json
// writes without escapes for HTML.

// Compact returns the checkpoint as JSON in its shortest form, which is what
// limits count. It fails only on values that JSON cannot hold: unknown fields
// that are not JSON, years beyond 9999; a checkpoint that [Project] returned, or
// that was read, has none.
func (c *Checkpoint) Compact() ([]byte, error) { return encodeObject(c) }

func encodeObject(o object) ([]byte, error) {
	e := &encoder{}
	e.object(o)
	return e.out, e.err
}

// encoder collects a text, and the first error.
type encoder struct {
	out []byte
	err error
	// most is how long the text may become: what is longer is not written to its
	// end. 0 is no limit.
	most int
}

// over tells whether the text is already longer than it may become.
func (e *encoder) over() bool { return e.most > 0 && len(e.out) > e.most }

// object writes the known fields in order and then the unknown members whose
// name no written field has.
func (e *encoder) object(o object) {
	e.out = append(e.out, '{')
	start := len(e.out)
	fields, extra := o.fields(), o.unknown()
	member := func(name string) {
		if len(e.out) > start {
			e.out = append(e.out, ',')
		}
		e.text(name)
		e.out = append(e.out, ':')
	}
	var written map[string]bool
	for _, f := range fields {
		if _, foreign := extra[f.name]; empty(f.to) && (!f.keep || foreign) {
			continue
		}
		member(f.name)
		e.value(f.to)
		if extra != nil {
			if written == nil {
				written = make(map[string]bool)
			}
			written[f.name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if written[name] {
			continue
		}
		member(name)
		if !json.Valid(extra[name]) {
			e.fail(fmt.Errorf("the unknown field %q is not JSON", name))
		}
		e.out = append(e.out, jsontree.Compact(extra[name])...)
	}
	e.out = append(e.out, '}')
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// empty tells whether there is nothing to write.
func empty(to any) bool {
	switch v := to.(type) {
	case *string:
		return *v == ""
	case *bool:
		return !*v
	case *int:
		return *v == 0
	case *time.Time:
		return v.IsZero()
	case *[]string:
		return len(*v) == 0
	case *[]Step:
		return len(*v) == 0
	case *[]Decision:
		return len(*v) == 0
	case *[]FailedApproach:
		return len(*v) == 0
	case *[]Result:
		return len(*v) == 0
	case *[]Criterion:
		return len(*v) == 0
	case *Command:
		return len(*v) == 0
	case **CurrentStep:
		return *v == nil
	case **Hashes:
		return *v == nil
	case **Cut:
		return *v == nil
	case *Verification:
		return v.ContractRef == "" && len(v.Results) == 0 && len(v.Extra) == 0
	case *Metadata:
		return v.CreatedBy == "" && v.LastUpdatedAt.IsZero() && v.Reason == "" && len(v.PreviousAgents) == 0 &&
			len(v.Extra) == 0
	case word:
		return v.get() == ""
	}
	return false
}

// value writes what a field points to.
func (e *encoder) value(to any) {
	switch v := to.(type) {
	case *string:
		e.text(*v)
	case word:
		e.text(v.get())
	case *bool:
		e.out = strconv.AppendBool(e.out, *v)
	case *int:
		e.out = strconv.AppendInt(e.out, int64(*v), 10)
	case *time.Time:
		e.time(*v)
	case *[]string:
		list(e, *v, func(s *string) { e.text(*s) })
	case *[]Step:
		list(e, *v, func(s *Step) { e.object(s) })
	case *[]Decision:
		list(e, *v, func(d *Decision) { e.object(d) })
	case *[]FailedApproach:
		list(e, *v, func(a *FailedApproach) { e.object(a) })
	case *[]Result:
		list(e, *v, func(r *Result) { e.object(r) })
	case *[]Criterion:
		list(e, *v, func(c *Criterion) { e.object(c) })
	case **CurrentStep:
		if *v == nil {
			e.out = append(e.out, "null"...)
			return
		}
		e.object(*v)
	case object:
		e.object(v)
	default:
		text, err := marshal(v)
		e.out = append(e.out, text...)
		if err != nil {
			e.fail(err)
		}
	}
}

func list[T any](e *encoder, all []T, write func(*T)) {
	e.out = append(e.out, '[')
	for i := range all {
		if e.over() {
			return
		}
		if i > 0 {
			e.out = append(e.out, ',')
		}
		write(&all[i])
	}
	e.out = append(e.out, ']')
}

func (e *encoder) time(at time.Time) {
	if at.Year() < 0 || at.Year() > 9999 {
		e.fail(errors.New("a time is outside of the years 0 to 9999"))
	}
	e.out = append(e.out, '"')
	e.out = at.AppendFormat(e.out, time.RFC3339Nano)
	e.out = append(e.out, '"')
}

// text writes a text; bytes that are not UTF-8 become U+FFFD.
func (e *encoder) text(s string) {
	const hexDigits = "0123456789abcdef"
	e.out = append(e.out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.out = append(e.out, '\\', byte(r))
		case r >= ' ' && r != '\u2028' && r != '\u2029':
			e.out = utf8.AppendRune(e.out, r)
		default:
			if at := bytes.IndexRune([]byte("\b\f\n\r\t"), r); at >= 0 {
				e.out = append(e.out, '\\', "bfnrt"[at])
				continue
			}
			e.out = append(e.out, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		}
	}
	e.out = append(e.out, '"')
}

// word is a pointer to a text of a type of its own.
type word interface{ get() string }

func (p *Phase) get() string        { return string(*p) }
func (r *Reason) get() string       { return string(*r) }
func (s *Status) get() string       { return string(*s) }
func (r *Runner) get() string       { return string(*r) }
func (t *Timing) get() string       { return string(*t) }
func (t *ContractType) get() string { return string(*t) }

// marshal writes other values in the same form.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
