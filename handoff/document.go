package handoff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

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
	root *node
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
	root, err := parseText(name, data, documentDepth, "activePrd", "adhocQueue")
	if err != nil {
		return nil, err
	}
	if root.kind != '{' {
		return nil, d.invalid(root, "%s stands where the file's object has to be", root.what())
	}
	d.root = root
	return d, nil
}

const byteOrderMark = "\xef\xbb\xbf"

// parseText scans a JSON file down to a depth, of the root's members only those
// that are named, if any are; places are those in data.
func parseText(name string, data []byte, keep int, only ...string) (*node, error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, &Error{Kind: ErrSyntax, Op: "read", File: name, Line: 1, Column: 1, Msg: "it is UTF-16",
			Hint: "save the file as UTF-8"}
	}
	if at := invalidUTF8(data); at >= 0 {
		line, column := position(data, at)
		return nil, &Error{Kind: ErrSyntax, Op: "read", File: name, Line: line, Column: column,
			Msg: fmt.Sprintf("the byte 0x%02x is not UTF-8", data[at]), Hint: "save the file as UTF-8"}
	}
	skip := 0
	if bytes.HasPrefix(data, []byte(byteOrderMark)) {
		skip = len(byteOrderMark)
	}
	s := &scanner{text: data, at: skip, keep: keep, only: only}
	root, bad := s.whole()
	if bad != nil {
		line, column := position(data, bad.at)
		return nil, &Error{Kind: bad.kind, Op: "read", File: name, Line: line, Column: column, Msg: bad.msg,
			Hint: "the file is left as it is; correct it there"}
	}
	return root, nil
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// position returns the line and the column, in characters, of an offset.
func position(data []byte, at int) (line, column int) {
	before := data[:min(at, len(data))]
	line = 1 + bytes.Count(before, []byte("\n"))
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	before = bytes.TrimPrefix(before, []byte(byteOrderMark))
	return line, 1 + utf8.RuneCount(before)
}

func (d *Document) fault(kind error, n *node, format string, args ...any) *Error {
	e := &Error{Kind: kind, Op: "read", File: d.name, Msg: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Line, e.Column = position(d.data, n.start)
	}
	return e
}

func (d *Document) invalid(n *node, format string, args ...any) error {
	return d.fault(ErrInvalid, n, format, args...)
}

// Bytes returns the content, which must not be changed.
func (d *Document) Bytes() []byte { return d.data }

func (d *Document) raw(n *node) []byte { return d.data[n.start:n.end] }

// text is a text or a number as text.
func (d *Document) text(n *node) string {
	switch {
	case n == nil:
		return ""
	case n.kind == '"':
		return unquoted(d.raw(n))
	case n.kind == 0:
		return string(d.raw(n))
	}
	return ""
}

// Places lists where checkpoints can stand, activePrd first, then the items of
// adhocQueue that have an id, in their order.
func (d *Document) Places() []Place {
	var places []Place
	if prd := d.root.get("activePrd"); prd != nil && prd.kind == '{' {
		places = append(places, PRD)
	}
	if queue := d.root.get("adhocQueue"); queue != nil {
		for _, item := range queue.items {
			if id := d.text(item.get("id")); id != "" && !slices.Contains(places, Adhoc(id)) {
				places = append(places, Adhoc(id))
			}
		}
	}
	return places
}

// owner finds the object that holds the checkpoint of a place.
func (d *Document) owner(p Place) (*node, error) {
	if p == PRD {
		prd := d.root.get("activePrd")
		if prd.null() {
			return nil, d.missing(prd, "there is no activePrd")
		}
		if prd.kind != '{' {
			return nil, d.invalid(prd, "activePrd is %s, not an object", prd.what())
		}
		return prd, nil
	}
	id, ok := strings.CutPrefix(string(p), adhocPrefix)
	if !ok || id == "" {
		_, err := ParsePlace(string(p))
		return nil, err
	}
	queue := d.root.get("adhocQueue")
	if !queue.null() && queue.kind != '[' {
		return nil, d.invalid(queue, "adhocQueue is %s, not a list", queue.what())
	}
	var found *node
	if queue != nil {
		for _, item := range queue.items {
			if d.text(item.get("id")) != id {
				continue
			}
			if found != nil {
				line, _ := position(d.data, found.start)
				return nil, d.invalid(item, "a second item of adhocQueue has the id %q; the first is in line %d", id, line)
			}
			found = item
		}
	}
	if found == nil {
		return nil, d.missing(queue, fmt.Sprintf("adhocQueue has no item with the id %q", id))
	}
	return found, nil
}

func (d *Document) missing(n *node, msg string) error {
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
	t := Task{Place: p, ID: string(p), Description: d.text(owner.get("description"))}
	if p != PRD {
		return t, nil
	}
	t.PRD, t.Story = d.text(owner.get("id")), d.text(owner.get("currentStory"))
	t.File, t.Branch = d.text(owner.get("file")), d.text(owner.get("branch"))
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
	n := owner.get(checkpointKey)
	if n.null() {
		return nil, nil
	}
	if n.kind != '{' {
		return nil, d.invalid(n, "checkpoint is %s, not an object or null", n.what())
	}
	c := &Checkpoint{}
	if err := json.Unmarshal(d.raw(n), c); err != nil {
		e := d.fault(ErrInvalid, n, "read checkpoint")
		e.Err = err
		return nil, e
	}
	return c, nil
}
