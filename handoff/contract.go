package handoff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// ContractType is the way in which a task is verified.
type ContractType string

// The types.
const (
	// Verifiable: the criteria must be met.
	Verifiable ContractType = "verifiable"
	// Advisory: a person checks the result.
	Advisory ContractType = "advisory"
	// Skip: only the ordinary checks.
	Skip ContractType = "skip"
)

// Timing is the time at which a criterion is checked.
type Timing string

// The timings.
const (
	Immediate Timing = "immediate"
	Deferred  Timing = "deferred"
)

// Contract has the criteria for the success of a task.
type Contract struct {
	Type     ContractType
	Criteria []Criterion
	Extra    Extra
	// Ref is the reference of the contract and File its file.
	Ref, File string
}

// Criterion is a criterion of a contract.
type Criterion struct {
	// Activity names the check: "unit-test", "lint". It is the description of a criterion that
	// has only that.
	Activity    string
	Description string
	// Pattern selects what is checked, for example the tests.
	Pattern string
	// Timing defaults to [Immediate].
	Timing Timing
	// Command is the program that checks the criterion, with its arguments, or a shell
	// command; empty if an agent or a person checks it.
	Command Command
	Extra   Extra
}

// Command is a program with its arguments. A single string is a shell command.
type Command []string

// Shell reports whether the command is a shell command.
func (c Command) Shell() bool { return len(c) == 1 }

// UnmarshalJSON reads a list of strings or one string.
func (c *Command) UnmarshalJSON(data []byte) error {
	var line string
	if json.Unmarshal(data, &line) == nil {
		*c = nil
		if strings.TrimSpace(line) != "" {
			*c = Command{line}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(c))
}

// MarshalJSON writes a shell command as a string.
func (c Command) MarshalJSON() ([]byte, error) {
	if c.Shell() {
		return jsontree.Marshal(c[0], "")
	}
	return jsontree.Marshal([]string(c), "")
}

// MarshalJSON writes the contract with its unknown fields.
func (c Contract) MarshalJSON() ([]byte, error) { return encodeObject(&c) }

// UnmarshalJSON reads a contract.
func (c *Contract) UnmarshalJSON(data []byte) error { return decodeObject(data, nil, c) }

func (c *Contract) members() ([]field, *Extra) {
	return []field{always("type", &c.Type), always("criteria", &c.Criteria)}, &c.Extra
}

// MarshalJSON writes the criterion with its unknown fields.
func (c Criterion) MarshalJSON() ([]byte, error) { return encodeObject(&c) }

// UnmarshalJSON reads a criterion; a single string is its description.
func (c *Criterion) UnmarshalJSON(data []byte) error { return decodeObject(data, &c.Description, c) }

func (c *Criterion) members() ([]field, *Extra) {
	return []field{
		always("activity", &c.Activity),
		sometimes("description", &c.Description),
		sometimes("pattern", &c.Pattern),
		sometimes("timing", &c.Timing),
		sometimes("command", &c.Command),
	}, &c.Extra
}

// Runnable returns the criteria that have commands.
func (c *Contract) Runnable() []Criterion {
	return slices.DeleteFunc(slices.Clone(c.Criteria), func(c Criterion) bool { return len(c.Command) == 0 })
}

// ContractFiles returns the files that can have the contract of the task at a place, for
// [FindContract]: the builder-state.json, and the existing JSON files of its PRD, in the
// same folder or where activePrd.file says, none outside of root.
func ContractFiles(d *Document, loc Location, p Place) []string {
	files := []string{loc.File}
	task, err := d.Task(p)
	if err != nil {
		return files
	}
	dir := filepath.Dir(loc.File)
	var names []string
	if name := filepath.FromSlash(task.File); name != "" {
		name = strings.TrimSuffix(name, filepath.Ext(name)) + ".json"
		names = append(names, filepath.Join(loc.Root, name), filepath.Join(dir, name))
	}
	names = append(names, filepath.Join(dir, "prd.json"), filepath.Join(loc.Root, "docs", "prd.json"))
	if task.PRD != "" && task.PRD == path.Base(task.PRD) {
		for _, dir := range []string{dir, filepath.Join(dir, "prds"), filepath.Join(loc.Root, "docs", "prds")} {
			names = append(names, filepath.Join(dir, task.PRD+".json"))
		}
	}
	for _, name := range names {
		if rel, err := filepath.Rel(loc.Root, name); err != nil || !filepath.IsLocal(rel) || slices.Contains(files, name) {
			continue
		}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	return files
}

// FindContract resolves a reference such as "US-003.verificationContract" in the
// first of the files that has it: the object with that id or name, at any depth, and in
// it the members after the dots. A reference without an object's name is a member at the
// top of a file.
//
// A missing or invalid contract is an error that matches [ErrContract], and the task is
// not verified. The same holds if a file has the contract twice with different content.
func FindContract(ref string, files ...string) (*Contract, error) {
	if strings.Trim(ref, ". ") == "" {
		return nil, &Error{Kind: ErrContract, Op: "find contract", Msg: "the checkpoint names no verification contract"}
	}
	for _, file := range files {
		data, _, err := readFile(file)
		if err != nil {
			return nil, &Error{Kind: ErrContract, Op: "find contract " + quoted(ref), Err: err}
		}
		c, err := contractIn(file, data, ref)
		if c != nil || err != nil {
			return c, err
		}
	}
	return nil, &Error{Kind: ErrContract, Op: "find contract " + quoted(ref),
		Msg:  "it is in none of " + strings.Join(files, ", "),
		Hint: "the task is not verified; name the file with the contract"}
}

func quoted(text string) string { return fmt.Sprintf("%q", clipped(text, textSize)) }

// contractIn resolves the reference in one file, nil if the file does not have it.
func contractIn(file string, data []byte, ref string) (*Contract, error) {
	root, err := parseText(file, data, jsontree.Options{})
	if err != nil {
		return nil, &Error{Kind: ErrContract, Op: "find contract " + quoted(ref), Err: err}
	}
	d := &Document{name: file, data: data, root: root}
	var found *jsontree.Value
	for _, n := range resolve(root, strings.Split(ref, ".")) {
		switch {
		case n.IsNull():
			continue
		case found != nil && !bytes.Equal(jsontree.Compact(found.Raw()), jsontree.Compact(n.Raw())):
			return nil, d.noContract(ref, n, "the file has another contract of that name with different content")
		}
		found = n
	}
	if found == nil {
		return nil, nil
	}
	return d.contract(ref, found)
}

// resolve returns the values of a path of names.
func resolve(n *jsontree.Value, names []string) []*jsontree.Value {
	found := []*jsontree.Value{follow(n, names)}
	for split := 1; split < len(names); split++ {
		id := strings.Join(names[:split], ".")
		for _, owner := range named(n, id) {
			found = append(found, follow(owner, names[split:]))
		}
	}
	return slices.DeleteFunc(found, func(n *jsontree.Value) bool { return n == nil })
}

func follow(n *jsontree.Value, names []string) *jsontree.Value {
	for _, name := range names {
		n = n.Get(name)
	}
	return n
}

// named returns the objects with an id, or of a name.
func named(n *jsontree.Value, id string) []*jsontree.Value {
	var found []*jsontree.Value
	if n.Is(jsontree.Object) && text(n.Get("id")) == id {
		found = append(found, n)
	}
	for _, m := range n.Members {
		if m.Name == id && m.Value.Is(jsontree.Object) && text(m.Value.Get("id")) != id {
			found = append(found, m.Value)
		}
		found = append(found, named(m.Value, id)...)
	}
	for _, item := range n.Items {
		found = append(found, named(item, id)...)
	}
	return found
}

func (d *Document) noContract(ref string, n *jsontree.Value, format string, args ...any) error {
	e := d.fault(ErrContract, n, format, args...)
	e.Op = "find contract " + quoted(ref) + " in"
	e.Hint = "the task is not verified until the contract is corrected"
	return e
}

// contract reads a contract strictly: a misread contract could pass.
func (d *Document) contract(ref string, n *jsontree.Value) (*Contract, error) {
	if n.Kind != jsontree.Object {
		return nil, d.noContract(ref, n, "want an object with the contract, found %s", n.Kind)
	}
	c := &Contract{}
	if err := json.Unmarshal(n.Raw(), c); err != nil {
		return nil, d.noContract(ref, n, "%v", err)
	}
	for _, name := range []string{"type", "criteria"} {
		if _, bad := c.Extra[name]; bad {
			return nil, d.noContract(ref, n.Get(name), "%s has the wrong type", name)
		}
	}
	c.Type = cmp.Or(c.Type, Verifiable)
	if !slices.Contains([]ContractType{Verifiable, Advisory, Skip}, c.Type) {
		return nil, d.noContract(ref, n.Get("type"), "the type %q is not one of verifiable, advisory, skip", c.Type)
	}
	if c.Type == Verifiable && len(c.Criteria) == 0 {
		return nil, d.noContract(ref, n, "the contract has no criteria")
	}
	for i := range c.Criteria {
		criterion := &c.Criteria[i]
		at := n.Get("criteria").Items[i]
		if criterion.Activity == "" && criterion.Description == "" {
			return nil, d.noContract(ref, at, "the criterion has no activity and no description")
		}
		if _, bad := criterion.Extra["command"]; bad {
			return nil, d.noContract(ref, at, "want a string or a list of strings as the command")
		}
		if criterion.Activity == "" { // what results are listed by
			criterion.Activity, criterion.Description = criterion.Description, ""
		}
		criterion.Timing = cmp.Or(criterion.Timing, Immediate)
		if !slices.Contains([]Timing{Immediate, Deferred}, criterion.Timing) {
			return nil, d.noContract(ref, at, "the timing %q is not one of immediate, deferred", criterion.Timing)
		}
	}
	c.Ref, c.File = ref, d.name
	return c, nil
}
