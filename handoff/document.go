package handoff

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// MaxDepth is the limit of the nesting of objects and arrays in a file.
const MaxDepth = 1000

// MaxSize is the limit of a file in bytes: 64 MiB.
const MaxSize = 64 << 20

// Place is the place of a checkpoint in a file: "prd" (in activePrd) or
// "adhoc:ID" (in the item of adhocQueue with that id).
type Place string

// PRD is the place in activePrd.
const PRD Place = "prd"

const adhocPrefix = "adhoc:"

// Adhoc returns the place in the item of adhocQueue with that id.
func Adhoc(id string) Place { return Place(adhocPrefix + id) }

// ParsePlace reads "prd" or "adhoc:ID".
func ParsePlace(text string) (Place, error) {
	if id, ok := strings.CutPrefix(text, adhocPrefix); text == string(PRD) || ok && id != "" {
		return Place(text), nil
	}
	return "", &Error{Kind: ErrNoTask, Op: "choose task",
		Msg:  fmt.Sprintf("%q is not a place of a checkpoint", text),
		Hint: `want "prd" or "adhoc:" and the id of an item of adhocQueue`}
}

// Document is the content of a builder-state.json. It is immutable and safe for
// concurrent use.
type Document struct {
	name string
	data []byte
	root *jsontree.Value
}

// documentDepth is the depth of the known members: those of the file, of activePrd, and
// of the items of adhocQueue.
const documentDepth = 3

// Parse parses the content of a builder-state.json; name is for errors, which have line
// and column. The content is JSON (RFC 8259), with or without a byte-order mark; of
// repeated members the last is used. Errors match [ErrSyntax], [ErrInvalid] or
// [ErrLimit]. The document keeps data, which must not change any more.
func Parse(name string, data []byte) (*Document, error) {
	d := &Document{name: name, data: data}
	if len(data) > MaxSize {
		return nil, &Error{Kind: ErrLimit, Op: "read", File: name,
			Msg: fmt.Sprintf("it has %d bytes, the limit is %d", len(data), MaxSize)}
	}
	root, err := parseText(name, data, jsontree.Options{KeepDepth: documentDepth,
		KeepNames: []string{"activePrd", "adhocQueue"}})
	if err != nil {
		return nil, err
	}
	if root.Kind != jsontree.Object {
		return nil, d.invalid(root, "want an object, found %s", root.Kind)
	}
	d.root = root
	return d, nil
}

// parseText reads a JSON file.
func parseText(name string, data []byte, o jsontree.Options) (*jsontree.Value, error) {
	o.MaxDepth = MaxDepth
	root, err := jsontree.Parse(data, o)
	bad, ok := errors.AsType[*jsontree.Error](err)
	if !ok {
		return root, err
	}
	e := &Error{Kind: ErrSyntax, Op: "read", File: name, Line: bad.Line, Column: bad.Column, Msg: bad.Msg,
		Hint: cmp.Or(bad.Hint, "the file was not changed; correct it there")}
	if errors.Is(bad, jsontree.ErrLimit) {
		e.Kind = ErrLimit
	}
	return nil, e
}

func (d *Document) fault(kind error, n *jsontree.Value, format string, args ...any) *Error {
	e := &Error{Kind: kind, Op: "read", File: d.name, Msg: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Line, e.Column = jsontree.Position(d.data, n.Start)
	}
	return e
}

func (d *Document) invalid(n *jsontree.Value, format string, args ...any) error {
	return d.fault(ErrInvalid, n, format, args...)
}

// Bytes returns the content, which must not be changed.
func (d *Document) Bytes() []byte { return d.data }

// text returns the content of a string, and a number as it is written.
func text(n *jsontree.Value) string {
	if n.Is(jsontree.String) || n.Is(jsontree.Number) {
		return n.Scalar()
	}
	return ""
}

// Places returns the places of checkpoints: activePrd, then the items of adhocQueue with
// an id in their order.
func (d *Document) Places() []Place {
	var places []Place
	if prd := d.root.Get("activePrd"); prd.Is(jsontree.Object) {
		places = append(places, PRD)
	}
	for _, item := range d.root.Get("adhocQueue").List() {
		if id := text(item.Get("id")); id != "" && !slices.Contains(places, Adhoc(id)) {
			places = append(places, Adhoc(id))
		}
	}
	return places
}

// owner returns the object with the checkpoint of a place.
func (d *Document) owner(p Place) (*jsontree.Value, error) {
	if p == PRD {
		prd := d.root.Get("activePrd")
		if prd.IsNull() {
			return nil, d.missing(prd, "there is no activePrd")
		}
		if prd.Kind != jsontree.Object {
			return nil, d.invalid(prd, "field activePrd: want an object, found %s", prd.Kind)
		}
		return prd, nil
	}
	id, ok := strings.CutPrefix(string(p), adhocPrefix)
	if !ok || id == "" {
		_, err := ParsePlace(string(p))
		return nil, err
	}
	queue := d.root.Get("adhocQueue")
	if !queue.IsNull() && queue.Kind != jsontree.Array {
		return nil, d.invalid(queue, "field adhocQueue: want an array, found %s", queue.Kind)
	}
	var found *jsontree.Value
	for _, item := range queue.List() {
		if text(item.Get("id")) != id {
			continue
		}
		if found != nil {
			line, _ := jsontree.Position(d.data, found.Start)
			return nil, d.invalid(item, "a second item of adhocQueue has the id %q; the first is in line %d", id, line)
		}
		found = item
	}
	if found == nil {
		return nil, d.missing(queue, fmt.Sprintf("adhocQueue has no item with the id %q", id))
	}
	return found, nil
}

func (d *Document) missing(n *jsontree.Value, msg string) error {
	e := d.fault(ErrNoTask, n, "%s", msg)
	e.Hint = "no object in the file can hold a checkpoint: add an activePrd or an item of adhocQueue"
	if places := d.Places(); len(places) > 0 {
		var names []string
		for _, p := range places {
			names = append(names, string(p))
		}
		e.Hint = "the file has " + strings.Join(names, ", ") + "; name it with --task"
	}
	return e
}

// Task is the task at a place of a file.
type Task struct {
	Place Place
	// ID identifies the task: "prd-dark-mode/US-003" for a story of a PRD,
	// "prd-dark-mode" between stories, "adhoc:adhoc-001".
	ID string
	// PRD, Story, File and Branch are those of activePrd.
	PRD, Story, File, Branch string
	// Description is that of an ad-hoc item.
	Description string
}

// Task returns the task at a place.
func (d *Document) Task(p Place) (Task, error) {
	owner, err := d.owner(p)
	if err != nil {
		return Task{}, err
	}
	t := Task{Place: p, ID: string(p), Description: text(owner.Get("description"))}
	if p != PRD {
		return t, nil
	}
	t.PRD, t.Story = text(owner.Get("id")), text(owner.Get("currentStory"))
	t.File, t.Branch = text(owner.Get("file")), text(owner.Get("branch"))
	t.ID = cmp.Or(t.PRD, t.ID)
	if t.Story != "" {
		t.ID += "/" + t.Story
	}
	return t, nil
}

const checkpointKey = "checkpoint"

// Checkpoint returns the checkpoint at a place, nil if there is none or it is null. A known
// field of another type, and a phase that is none, are errors with their line that match
// [ErrInvalid]; unknown fields are kept.
func (d *Document) Checkpoint(p Place) (*Checkpoint, error) {
	owner, err := d.owner(p)
	if err != nil {
		return nil, err
	}
	n := owner.Get(checkpointKey)
	if n.IsNull() {
		return nil, nil
	}
	if n.Kind != jsontree.Object {
		return nil, d.invalid(n, "field checkpoint: want an object or null, found %s", n.Kind)
	}
	c := &Checkpoint{}
	if err := json.Unmarshal(n.Raw(), c); err != nil {
		e := d.fault(ErrInvalid, n, "read checkpoint")
		e.Err = err
		return nil, e
	}
	if err := d.checkTypes(n, c); err != nil {
		return nil, err
	}
	return c, nil
}
