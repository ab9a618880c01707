// Package ledger keeps handoff ledgers: what agents recorded about their work on a
// task, so that another agent can continue it. A ledger is append-only rows in the
// store ([Store]); builder-state.json shows as much of it as fits.
//
// A change is an [Op], and a ledger is the result of its ops in order ([Fold]).
// [Recorder.Apply] records ops in the ledger and in the file, [Recorder.Resume]
// returns what the next agent needs, and [Recorder.Verify] runs the verification
// contract. The commands of perdure handoff do the same.
//
// Reading order: row.go (the rows), store.go (their SQL), op.go, fold.go,
// recorder.go.
//
// The package is experimental: it may change until version 1.0.
package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// The kinds of ops. Each but opAdopt is a command too.
const (
	OpStart     = "start"
	OpStep      = "step"
	OpDecide    = "decide"
	OpCurrent   = "current"
	OpPending   = "pending"
	OpBlock     = "block"
	OpUnblock   = "unblock"
	OpTried     = "tried"
	OpForbid    = "forbid"
	OpNext      = "next"
	OpPhase     = "phase"
	OpVerify    = "verify"
	OpContext   = "context"
	OpSave      = "save"
	OpFail      = "fail"
	OpRateLimit = "rate-limit"
	OpReassign  = "reassign"
	OpDone      = "done"

	opAdopt = "adopt" // what another program wrote into the file
)

// Op is one change of the work on a task. The kind determines the fields; see
// [Op.Check]. Its JSON is a line of a batch, and the data of an entry.
type Op struct {
	Kind string `json:"op,omitempty"`
	// Text is the completed step, the decision, the blocker, …
	Text string `json:"text,omitempty"`

	// Fields of a step: paths (of a save, too: of files that belong to no step yet), the
	// pending step that it completes (a number from 1, or the text), and whether the
	// agent that resumes must run it again. Current is the next current step.
	Created  []string `json:"created,omitempty"`
	Modified []string `json:"modified,omitempty"`
	Pending  string   `json:"pending,omitempty"`
	RunAgain bool     `json:"run_again,omitempty"`
	Current  string   `json:"current,omitempty"`

	// Because is the reason of a decision or an attempt; Outcome its result.
	Because string `json:"because,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	// Partial describes what is done of the current step.
	Partial string `json:"partial,omitempty"`
	// Steps are added to the pending steps, or with Replace replace them.
	Steps   []string `json:"steps,omitempty"`
	Replace bool     `json:"replace,omitempty"`
	// Remove removes the entry of Text instead of adding it.
	Remove bool `json:"remove,omitempty"`

	Phase handoff.Phase `json:"phase,omitempty"`
	// Contract is the verification contract of the task; Status the result of
	// the activity that Text names, which RanBy ran.
	Contract string         `json:"contract,omitempty"`
	Status   handoff.Status `json:"status,omitempty"`
	RanBy    handoff.Runner `json:"ran_by,omitempty"`
	// ContractFile is the file with the contract, if it is in none of the usual files.
	ContractFile string `json:"contract_file,omitempty"`

	// Used is the part of the context in use, from 0 to 1; Source is "reported",
	// "observed" by a meter, or "estimated".
	Used   float64 `json:"used,omitempty"`
	Source string  `json:"source,omitempty"`

	Reason handoff.Reason `json:"reason,omitempty"`
	// Until is when a rate limit ends.
	Until time.Time `json:"until,omitzero"`
	// To is the next agent.
	To string `json:"to,omitempty"`
	// Title and Description are those of the task.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`

	// At is the time of the record.
	At time.Time `json:"at,omitzero"`
	// Files are the touched files at that time.
	Files []handoff.FileEntry `json:"files,omitempty"`
	// Base and Theirs are checkpoints: the one that was written, and the one that
	// another program changed.
	Base   json.RawMessage `json:"base,omitempty"`
	Theirs json.RawMessage `json:"theirs,omitempty"`
}

// Limits of ops.
const (
	// MaxOpBytes is the limit of a line of a batch.
	MaxOpBytes = MaxEntryBytes / 2
	// MaxOpText is the limit of each string of an op, in bytes.
	MaxOpText = 100_000
	// MaxOpList is the limit of each list of an op.
	MaxOpList = 1000
)

// needs are the required and the other allowed fields of a kind of op.
type needs struct{ must, may []string }

func kinds() map[string]needs {
	return map[string]needs{
		OpStart:     {nil, []string{"text", "title", "description", "steps", "phase", "contract", "contract_file"}},
		OpStep:      {[]string{"text"}, []string{"created", "modified", "pending", "run_again", "current"}},
		OpDecide:    {[]string{"text"}, []string{"because"}},
		OpCurrent:   {[]string{"text"}, []string{"partial"}},
		OpPending:   {[]string{"steps"}, []string{"replace", "remove"}},
		OpBlock:     {[]string{"text"}, nil},
		OpUnblock:   {[]string{"text"}, nil},
		OpTried:     {[]string{"text"}, []string{"outcome", "because"}},
		OpForbid:    {[]string{"text"}, []string{"remove"}},
		OpNext:      {[]string{"text"}, nil},
		OpPhase:     {[]string{"phase"}, nil},
		OpVerify:    {nil, []string{"text", "status", "contract", "contract_file", "ran_by"}},
		OpContext:   {[]string{"used"}, []string{"source", "partial"}},
		OpSave:      {nil, []string{"reason", "partial", "created", "modified"}},
		OpFail:      {[]string{"text"}, []string{"partial"}},
		OpRateLimit: {nil, []string{"text", "until", "partial"}},
		OpReassign:  {[]string{"to"}, []string{"text", "partial"}},
		OpDone:      {nil, []string{"text"}},
	}
}

func (o *Op) values() map[string]string {
	return map[string]string{"text": o.Text, "pending": o.Pending, "current": o.Current, "because": o.Because,
		"outcome": o.Outcome, "partial": o.Partial, "contract": o.Contract,
		"contract_file": o.ContractFile, "source": o.Source, "to": o.To,
		"title": o.Title, "description": o.Description, "phase": string(o.Phase), "status": string(o.Status),
		"reason": string(o.Reason)}
}

// given returns the names of the fields that are not empty.
func (o *Op) given() []string {
	var names []string
	for name, text := range o.values() {
		if text != "" {
			names = append(names, name)
		}
	}
	for name, there := range map[string]bool{"created": len(o.Created) > 0, "modified": len(o.Modified) > 0,
		"run_again": o.RunAgain,
		"steps":     len(o.Steps) > 0 || o.Replace && o.Kind == OpPending, "replace": o.Replace, "remove": o.Remove,
		"used":  o.Used != 0,
		"until": !o.Until.IsZero(), "ran_by": o.RanBy != "", "files": len(o.Files) > 0, "base": len(o.Base) > 0,
		"theirs": len(o.Theirs) > 0} {
		if there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func invalid(hint, format string, args ...any) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "record work", Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// Check reports what is wrong with an op (CodeInvalid).
func (o *Op) Check() error {
	need, known := kinds()[o.Kind]
	if !known {
		names := slices.Sorted(maps.Keys(kinds()))
		return invalid("the operations are "+strings.Join(names, ", "), "%q is not an operation", o.Kind)
	}
	given, written := o.given(), "see `perdure handoff "+o.Kind+" --help`"
	for _, name := range need.must {
		if text, is := o.values()[name]; !slices.Contains(given, name) || is && strings.TrimSpace(text) == "" {
			return invalid(written, "%s needs %q", o.Kind, name)
		}
	}
	for _, name := range given {
		if !slices.Contains(need.must, name) && !slices.Contains(need.may, name) {
			return invalid(written, "%s has no %q", o.Kind, name)
		}
	}
	return o.checkValues()
}

func (o *Op) checkValues() error {
	for name, text := range o.values() {
		if len(text) > MaxOpText {
			return invalid("", "%q has %d bytes, the limit is %d", name, len(text), MaxOpText)
		}
		if err := storable(name, text); err != nil {
			return err
		}
	}
	for name, list := range map[string][]string{"created": o.Created, "modified": o.Modified, "steps": o.Steps} {
		if len(list) > MaxOpList {
			return invalid("", "%q has %d entries, the limit is %d", name, len(list), MaxOpList)
		}
		for _, text := range list {
			if strings.TrimSpace(text) == "" || len(text) > MaxOpText {
				return invalid("", "%q has an entry that is empty or longer than %d bytes", name, MaxOpText)
			}
			if err := storable(name, text); err != nil {
				return err
			}
		}
	}
	return o.checkWords()
}

func storable(name, text string) error {
	if strings.ContainsRune(text, 0) || strings.ToValidUTF8(text, "") != text {
		return invalid("", "%q is not valid UTF-8 text", name)
	}
	return nil
}

// checkWords checks the values of enumerations.
func (o *Op) checkWords() error {
	for _, v := range []struct {
		name, value string
		of          []string
	}{
		{"phase", string(o.Phase), Phases()},
		{"status", string(o.Status), []string{string(handoff.StatusPending), string(handoff.StatusPassed),
			string(handoff.StatusFailed),
			string(handoff.StatusSkipped)}},
		{"reason", string(o.Reason), []string{string(handoff.ReasonManual), string(handoff.ReasonPeriodic)}},
		{"source", o.Source, []string{"reported", "observed", "estimated"}},
	} {
		if v.value != "" && !slices.Contains(v.of, v.value) {
			return invalid("", "the %s %q is not one of %s", v.name, v.value, strings.Join(v.of, ", "))
		}
	}
	switch {
	case o.Used < 0 || o.Used > 1:
		return invalid("for example 78% or 0.78", "the context in use is %g %%, want 0 to 100 %%", o.Used*100)
	case o.Kind == OpVerify && o.Contract+o.ContractFile == "" && (o.Text == "" || o.Status == ""):
		return invalid(`for example: perdure handoff verify unit-test passed`,
			"verify needs the contract, or the activity and its status")
	case o.Kind == OpPending && o.Replace && o.Remove:
		return invalid("", "pending steps are replaced or removed, not both")
	}
	return nil
}

// Phases lists the phases of work in their order.
func Phases() []string {
	return []string{string(handoff.PhasePlanning), string(handoff.PhaseImplementation), string(handoff.PhaseVerification),
		string(handoff.PhaseDocumentation)}
}

// ReadOps reads a batch: one op as a JSON object a line. Blank lines are ignored. An
// error has the line, and no op is returned.
func ReadOps(r io.Reader) ([]Op, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxOpBytes)
	var ops []Op
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		op, err := parseOp(line)
		if err == nil {
			err = op.Check()
		}
		if err != nil {
			return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: fmt.Sprintf("read line %d", n), Err: err,
				Hint: `write each line as in {"op": "step", "text": "Created the parser", "created": ["parse.go"]}`}
		}
		if ops = append(ops, op); len(ops) > MaxBatch/2 {
			return nil, invalid("split it into several batches", "the batch has more than %d operations", MaxBatch/2)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, invalid("", "a line of the batch is longer than %d bytes", MaxOpBytes)
		}
		return nil, fmt.Errorf("read batch: %w", err)
	}
	return ops, nil
}

func parseOp(line []byte) (Op, error) {
	var op Op
	if err := jsontree.Decode(line, &op, jsontree.Options{}); err != nil {
		return op, invalid("", "not an operation: %s", err)
	}
	if len(op.Files) > 0 || len(op.Base) > 0 || len(op.Theirs) > 0 || op.RanBy != "" || !op.At.IsZero() {
		return op, invalid("", "at, files, base, theirs and ran_by cannot be set")
	}
	return op, nil
}
