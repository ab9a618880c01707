package handoff

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// checkpointDepth is the depth of the known members of a checkpoint.
const checkpointDepth = 4

// checkTypes returns an error for the first known field of a checkpoint that has another type,
// for a phase that is none, and for a version that this package does not know. decodeObject
// keeps such fields as unknown ones, so that a checkpoint that is written again loses nothing; a
// file that an agent or a person wrote has to be corrected there, before a phase or a step is
// taken for missing.
func (d *Document) checkTypes(n *jsontree.Value, c *Checkpoint) error {
	root, err := jsontree.Parse(n.Raw(), jsontree.Options{MaxDepth: MaxDepth, KeepDepth: checkpointDepth})
	if err != nil {
		return d.invalid(n, "read checkpoint: %v", err)
	}
	t := &typeCheck{d: d, at: n.Start}
	t.object(checkpointKey, root, c)
	if version := root.Get("schemaVersion"); t.err == nil && version != nil &&
		(c.SchemaVersion < 0 || c.SchemaVersion > SchemaVersion) {
		t.fail("checkpoint.schemaVersion", version, "at most %d, the newest version this program knows", SchemaVersion)
	}
	if phase := root.Get("phase"); t.err == nil && c.Phase != "" && !slices.Contains(phases(), c.Phase) {
		t.fail("checkpoint.phase", phase, "%s", "one of planning, implementation, verification, documentation")
	}
	return t.err
}

func phases() []Phase {
	return []Phase{PhasePlanning, PhaseImplementation, PhaseVerification, PhaseDocumentation}
}

// typeCheck finds the first field with another type.
type typeCheck struct {
	d   *Document
	at  int // the start of the checkpoint in the document
	err error
}

func (t *typeCheck) fail(field string, n *jsontree.Value, format string, want ...any) {
	moved := &jsontree.Value{Kind: n.Kind, Start: t.at + n.Start}
	t.err = t.d.invalid(moved, "field %s: want %s, found %s", field, fmt.Sprintf(format, want...), shownValue(n))
}

// shownValue returns a value as errors show it.
func shownValue(n *jsontree.Value) string {
	if n.Is(jsontree.String) || n.Is(jsontree.Number) {
		return clipped(string(n.Raw()), floorCheck)
	}
	return n.Kind.String()
}

// object checks the members of an object of the file, which o was read from.
func (t *typeCheck) object(field string, n *jsontree.Value, o object) {
	fields, extra := o.members()
	for _, f := range fields {
		name := field + "." + f.name
		member := n.Get(f.name)
		switch _, wrong := (*extra)[f.name]; {
		case t.err != nil || member == nil:
		case wrong:
			t.wrong(name, member, f.to)
		default:
			t.member(name, member, f.to)
		}
	}
}

// wrong fails for a member of another type, or for its first such entry.
func (t *typeCheck) wrong(name string, n *jsontree.Value, to any) {
	if _, ok := to.(*[]string); ok {
		for i, entry := range n.List() {
			if !entry.Is(jsontree.String) {
				t.fail(fmt.Sprintf("%s[%d]", name, i), entry, "a string")
				return
			}
		}
	}
	t.fail(name, n, "%s", wanted(to))
}

// member checks the objects in a member.
func (t *typeCheck) member(name string, n *jsontree.Value, to any) {
	switch v := to.(type) {
	case **CurrentStep:
		if *v != nil && n.Is(jsontree.Object) {
			t.object(name, n, *v)
		}
	case object:
		t.object(name, n, v)
	case *[]Step:
		checkEntries(t, name, n, *v, func(s *Step) object { return s })
	case *[]Decision:
		checkEntries(t, name, n, *v, func(d *Decision) object { return d })
	case *[]FailedApproach:
		checkEntries(t, name, n, *v, func(a *FailedApproach) object { return a })
	case *[]Result:
		checkEntries(t, name, n, *v, func(r *Result) object { return r })
	}
}

// checkEntries checks the entries of a list. An entry that is a text alone is one, too.
func checkEntries[T any](t *typeCheck, name string, n *jsontree.Value, list []T, as func(*T) object) {
	for i, entry := range n.List() {
		if t.err == nil && i < len(list) && entry.Is(jsontree.Object) {
			t.object(fmt.Sprintf("%s[%d]", name, i), entry, as(&list[i]))
		}
	}
}

// wanted names the type of a field.
func wanted(to any) string {
	switch to.(type) {
	case *time.Time:
		return "a time such as 2026-02-28T10:00:00Z"
	case *bool:
		return "true or false"
	case *int:
		return "a whole number"
	case *[]string:
		return "a list of strings"
	case **CurrentStep, object, **Hashes, **Cut:
		return "an object"
	}
	if name := fmt.Sprintf("%T", to); strings.HasPrefix(name, "*[]") {
		return "a list of objects"
	}
	return "a string"
}
