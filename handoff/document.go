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

// MaxDepth is how deep objects and arrays can be nested in a file that is read.
const MaxDepth = 1000

// MaxSize bounds, in bytes, the files that are read: 64 MiB.
const MaxSize = 64 << 20

// Place is where in a file a checkpoint stands: "prd" (in activePrd) or
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
	return "", &Error{Kind: ErrNoTask, Op: "choose task", Msg: fmt.Sprintf("%q is no place for a checkpoint", text),
		Hint: `give "prd" or "adhoc:" and the id of an item of adhocQueue`}
}

// Document is the content of a builder-state.json. It does not change: the
// methods that change something return another one. Its methods may be called
// by several goroutines at once.
type Document struct {
	name string
	data []byte
	root *jsontree.Value
}

// Depths at which members are known: the file's, those of activePrd, and those
// of the items of adhocQueue.
const documentDepth = 3

// Parse reads the content of a builder-state.json; name is for errors, which
// give line and column. It takes what JSON is (RFC 8259), with a byte-order
// mark or without; of members that stand twice the last counts. Faults match
// [ErrSyntax], [ErrInvalid] or [ErrLimit]. The document keeps data, which must
// not change any more.
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
	var bad *jsontree.Error
	if !errors.As(err, &bad) {
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

// Places lists where checkpoints can stand, activePrd first, then the items of
// adhocQueue that have an id, in their order.
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

// owner finds the object that holds the checkpoint of a place.
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
	e.Hint = "nothing in the file can hold a checkpoint: begin a PRD or an ad-hoc item in it"
	if places := d.Places(); len(places) > 0 {
		names := make([]string, len(places))
		for i, p := range places {
			names[i] = string(p)
		}
		e.Hint = "the file has " + strings.Join(names, ", ") + "; name it with --task"
	}
	return e
}

// Task is what a file says of the task at a place.
type Task struct {
	Place Place
	// ID is the same as long as the task is: "prd-dark-mode/US-003" for a story
	// of a PRD, "prd-dark-mode" between stories, "adhoc:adhoc-001".
	ID string
	// PRD, Story, File and Branch are those of activePrd.
	PRD, Story, File, Branch string
	// Description is that of an ad-hoc item.
	Description string
}

// Task returns what the file says of the task at a place.
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
	if t.PRD != "" {
		t.ID = t.PRD
	}
	if t.Story != "" {
		t.ID += "/" + t.Story
	}
	return t, nil
}

const checkpointKey = "checkpoint"

// Checkpoint returns the one at a place; nil, and no error, when there is none
// or it is null.
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
	return c, nil
}
