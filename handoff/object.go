package handoff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// object is a JSON object of which some members are known.
type object interface {
	// members returns the known members in order, and the others.
	members() ([]field, *Extra)
}

// field is a known member of a JSON object.
type field struct {
	name string
	to   any // pointer to the value
	keep bool
}

// always and sometimes return fields that are written even if they are empty, or not.
func always(name string, to any) field    { return field{name, to, true} }
func sometimes(name string, to any) field { return field{name, to, false} }

// decodeObject reads the members of an object by their exact names. Unknown members, and
// known ones of another type, go to the others unchanged. Of repeated members the last
// is used. A string instead of the object becomes its most important field, text.
func decodeObject(data []byte, text *string, o object) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' && text != nil {
		return json.Unmarshal(data, text)
	}
	if string(data) == "null" {
		return nil
	}
	data, _ = jsontree.ToValidUTF8(data)
	root, err := jsontree.Parse(data, jsontree.Options{KeepDepth: 1})
	if err != nil {
		return err
	}
	if root.Kind != jsontree.Object {
		return fmt.Errorf("want an object, found %s", root.Kind)
	}
	last := make(map[string]*jsontree.Value, len(root.Members))
	for _, m := range root.Members {
		last[m.Name] = m.Value
	}
	fields, extra := o.members()
	for _, f := range fields {
		n := last[f.name]
		if n == nil {
			continue
		}
		v := reflect.ValueOf(f.to).Elem()
		if err := json.Unmarshal(n.Raw(), f.to); err != nil {
			v.SetZero()
			continue
		}
		delete(last, f.name)
		if v.Kind() == reflect.Slice && v.Len() == 0 {
			v.SetZero()
		}
	}
	*extra = nil
	for name, n := range last {
		if *extra == nil {
			*extra = make(Extra, len(last))
		}
		(*extra)[name] = jsontree.Compact(n.Raw())
	}
	return nil
}

// MarshalJSON returns the checkpoint as in [Checkpoint.Compact].
func (c Checkpoint) MarshalJSON() ([]byte, error) { return encodeObject(&c) }

// UnmarshalJSON reads a checkpoint, also one that another program wrote.
func (c *Checkpoint) UnmarshalJSON(data []byte) error { return decodeObject(data, nil, c) }

func (c *Checkpoint) members() ([]field, *Extra) {
	return []field{
		sometimes("schemaVersion", &c.SchemaVersion),
		sometimes("taskId", &c.TaskID),
		sometimes("phase", &c.Phase),
		sometimes("nextAction", &c.NextAction),
		always("currentStep", &c.CurrentStep),
		always("pendingSteps", &c.PendingSteps),
		always("completedSteps", &c.CompletedSteps),
		always("decisions", &c.Decisions),
		sometimes("failedApproaches", &c.FailedApproaches),
		always("blockers", &c.Blockers),
		sometimes("notAllowed", &c.NotAllowed),
		sometimes("verification", &c.Verification),
		sometimes("files", &c.Files),
		sometimes("metadata", &c.Metadata),
		sometimes("error", &c.Error),
		sometimes("cut", &c.Cut),
		sometimes("ledger", &c.Ledger),
	}, &c.Extra
}

// MarshalJSON writes the step with its unknown fields.
func (s Step) MarshalJSON() ([]byte, error) { return encodeObject(&s) }

// UnmarshalJSON reads a step; a text alone is one too.
func (s *Step) UnmarshalJSON(data []byte) error { return decodeObject(data, &s.Step, s) }

func (s *Step) members() ([]field, *Extra) {
	return []field{
		always("step", &s.Step),
		sometimes("filesCreated", &s.FilesCreated),
		sometimes("filesModified", &s.FilesModified),
		sometimes("timestamp", &s.Timestamp),
		sometimes("runAgain", &s.RunAgain),
	}, &s.Extra
}

// MarshalJSON writes the step with its unknown fields.
func (s CurrentStep) MarshalJSON() ([]byte, error) { return encodeObject(&s) }

// UnmarshalJSON reads a step; a text alone is one too.
func (s *CurrentStep) UnmarshalJSON(data []byte) error { return decodeObject(data, &s.Description, s) }

func (s *CurrentStep) members() ([]field, *Extra) {
	return []field{
		always("description", &s.Description),
		sometimes("startedAt", &s.StartedAt),
		sometimes("partialWork", &s.PartialWork),
	}, &s.Extra
}

// MarshalJSON writes the decision with its unknown fields.
func (d Decision) MarshalJSON() ([]byte, error) { return encodeObject(&d) }

// UnmarshalJSON reads a decision; a text alone is one too.
func (d *Decision) UnmarshalJSON(data []byte) error { return decodeObject(data, &d.Decision, d) }

func (d *Decision) members() ([]field, *Extra) {
	return []field{
		always("decision", &d.Decision),
		sometimes("rationale", &d.Rationale),
		sometimes("timestamp", &d.Timestamp),
	}, &d.Extra
}

// MarshalJSON writes the approach with its unknown fields.
func (a FailedApproach) MarshalJSON() ([]byte, error) { return encodeObject(&a) }

// UnmarshalJSON reads an approach; a text alone is one too.
func (a *FailedApproach) UnmarshalJSON(data []byte) error { return decodeObject(data, &a.What, a) }

func (a *FailedApproach) members() ([]field, *Extra) {
	return []field{
		always("what", &a.What),
		sometimes("outcome", &a.Outcome),
		sometimes("why", &a.Why),
	}, &a.Extra
}

// MarshalJSON writes the result with its unknown fields.
func (r Result) MarshalJSON() ([]byte, error) { return encodeObject(&r) }

// UnmarshalJSON reads a result.
func (r *Result) UnmarshalJSON(data []byte) error { return decodeObject(data, nil, r) }

func (r *Result) members() ([]field, *Extra) {
	return []field{
		always("activity", &r.Activity),
		sometimes("status", &r.Status),
		sometimes("runAt", &r.RunAt),
		sometimes("ranBy", &r.RanBy),
	}, &r.Extra
}

// MarshalJSON writes the verification with its unknown fields.
func (v Verification) MarshalJSON() ([]byte, error) { return encodeObject(&v) }

// UnmarshalJSON reads a verification.
func (v *Verification) UnmarshalJSON(data []byte) error { return decodeObject(data, nil, v) }

func (v *Verification) members() ([]field, *Extra) {
	return []field{
		sometimes("contractRef", &v.ContractRef),
		always("results", &v.Results),
	}, &v.Extra
}

// MarshalJSON writes the metadata with its unknown fields.
func (m Metadata) MarshalJSON() ([]byte, error) { return encodeObject(&m) }

// UnmarshalJSON reads metadata.
func (m *Metadata) UnmarshalJSON(data []byte) error { return decodeObject(data, nil, m) }

func (m *Metadata) members() ([]field, *Extra) {
	return []field{
		always("createdBy", &m.CreatedBy),
		sometimes("lastUpdatedAt", &m.LastUpdatedAt),
		always("reason", &m.Reason),
		always("previousAgents", &m.PreviousAgents),
	}, &m.Extra
}
