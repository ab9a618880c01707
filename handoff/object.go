package handoff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// field is a known member of a JSON object.
type field struct {
	name string
	to   any // pointer to the value
	keep bool
}

// Fields that are written also when they are empty, and those that are not.
func always(name string, to any) field    { return field{name, to, true} }
func sometimes(name string, to any) field { return field{name, to, false} }

// empty tells whether the field has nothing to write.
func (f field) empty() bool {
	v := reflect.ValueOf(f.to).Elem()
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// encodeObject writes the fields in order and then the unknown members whose
// name no written field has.
func encodeObject(fields []field, extra Extra) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	written := make(map[string]bool, len(fields))
	member := func(name string, value []byte) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, err := marshal(name)
		if err != nil {
			return err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
		return nil
	}
	for _, f := range fields {
		empty := f.empty()
		if _, foreign := extra[f.name]; empty && (!f.keep || foreign) {
			continue
		}
		value, err := marshal(f.to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if empty && reflect.ValueOf(f.to).Elem().Kind() == reflect.Slice {
			value = []byte("[]")
		}
		written[f.name] = true
		if err := member(f.name, value); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if written[name] {
			continue
		}
		if err := member(name, extra[name]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// decodeObject reads the members of an object by their exact names. What is
// unknown, or is not what its name says, goes to extra as it stands; nothing is
// lost. Of members that stand twice, the last counts. A text in the place of
// the object is taken for its most important field, which is text.
func decodeObject(data []byte, text *string, fields []field, extra *Extra) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' && text != nil {
		return json.Unmarshal(data, text)
	}
	if string(data) == "null" {
		return nil
	}
	root, fault := scan(data, 1)
	if fault != nil {
		return fault
	}
	if root.kind != '{' {
		return fmt.Errorf("%s stands where an object has to be", root.what())
	}
	last := make(map[string]*node, len(root.members))
	for _, m := range root.members {
		last[m.key] = m.value
	}
	for _, f := range fields {
		n := last[f.name]
		if n == nil {
			continue
		}
		v := reflect.ValueOf(f.to).Elem()
		if err := json.Unmarshal(data[n.start:n.end], f.to); err != nil {
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
		(*extra)[name] = compacted(data[n.start:n.end])
	}
	return nil
}

// compacted returns JSON without blanks, numbers and texts as they stand.
func compacted(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return slices.Clone(raw) // nested deeper than the standard library reads
	}
	return b.Bytes()
}

// marshal writes JSON in its shortest form: no escapes that only matter in HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Compact returns the checkpoint as JSON in its shortest form, which is what
// limits count. It fails only on values that JSON cannot hold: unknown fields
// that are not JSON, years beyond 9999; a checkpoint that [Project] returned, or
// that was read, has none.
func (c *Checkpoint) Compact() ([]byte, error) { return marshal(c) }

// MarshalJSON returns the checkpoint as in [Checkpoint.Compact].
func (c Checkpoint) MarshalJSON() ([]byte, error) { return encodeObject(c.fields(), c.Extra) }

// UnmarshalJSON reads a checkpoint, also one that another program wrote.
func (c *Checkpoint) UnmarshalJSON(data []byte) error {
	return decodeObject(data, nil, c.fields(), &c.Extra)
}

func (c *Checkpoint) fields() []field {
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
	}
}

// MarshalJSON writes the step with its unknown fields.
func (s Step) MarshalJSON() ([]byte, error) { return encodeObject(s.fields(), s.Extra) }

// UnmarshalJSON reads a step; a text alone is one too.
func (s *Step) UnmarshalJSON(data []byte) error {
	return decodeObject(data, &s.Step, s.fields(), &s.Extra)
}

func (s *Step) fields() []field {
	return []field{
		always("step", &s.Step),
		sometimes("filesCreated", &s.FilesCreated),
		sometimes("filesModified", &s.FilesModified),
		sometimes("timestamp", &s.Timestamp),
		sometimes("runAgain", &s.RunAgain),
	}
}

// MarshalJSON writes the step with its unknown fields.
func (s CurrentStep) MarshalJSON() ([]byte, error) { return encodeObject(s.fields(), s.Extra) }

// UnmarshalJSON reads a step; a text alone is one too.
func (s *CurrentStep) UnmarshalJSON(data []byte) error {
	return decodeObject(data, &s.Description, s.fields(), &s.Extra)
}

func (s *CurrentStep) fields() []field {
	return []field{
		always("description", &s.Description),
		sometimes("startedAt", &s.StartedAt),
		sometimes("partialWork", &s.PartialWork),
	}
}

// MarshalJSON writes the decision with its unknown fields.
func (d Decision) MarshalJSON() ([]byte, error) { return encodeObject(d.fields(), d.Extra) }

// UnmarshalJSON reads a decision; a text alone is one too.
func (d *Decision) UnmarshalJSON(data []byte) error {
	return decodeObject(data, &d.Decision, d.fields(), &d.Extra)
}

func (d *Decision) fields() []field {
	return []field{
		always("decision", &d.Decision),
		sometimes("rationale", &d.Rationale),
		sometimes("timestamp", &d.Timestamp),
	}
}

// MarshalJSON writes the approach with its unknown fields.
func (a FailedApproach) MarshalJSON() ([]byte, error) { return encodeObject(a.fields(), a.Extra) }

// UnmarshalJSON reads an approach; a text alone is one too.
func (a *FailedApproach) UnmarshalJSON(data []byte) error {
	return decodeObject(data, &a.What, a.fields(), &a.Extra)
}

func (a *FailedApproach) fields() []field {
	return []field{
		always("what", &a.What),
		sometimes("outcome", &a.Outcome),
		sometimes("why", &a.Why),
	}
}

// MarshalJSON writes the result with its unknown fields.
func (r Result) MarshalJSON() ([]byte, error) { return encodeObject(r.fields(), r.Extra) }

// UnmarshalJSON reads a result.
func (r *Result) UnmarshalJSON(data []byte) error {
	return decodeObject(data, nil, r.fields(), &r.Extra)
}

func (r *Result) fields() []field {
	return []field{
		always("activity", &r.Activity),
		sometimes("status", &r.Status),
		sometimes("runAt", &r.RunAt),
		sometimes("ranBy", &r.RanBy),
	}
}

// MarshalJSON writes the verification with its unknown fields.
func (v Verification) MarshalJSON() ([]byte, error) { return encodeObject(v.fields(), v.Extra) }

// UnmarshalJSON reads a verification.
func (v *Verification) UnmarshalJSON(data []byte) error {
	return decodeObject(data, nil, v.fields(), &v.Extra)
}

func (v *Verification) fields() []field {
	return []field{
		sometimes("contractRef", &v.ContractRef),
		always("results", &v.Results),
	}
}

// MarshalJSON writes the metadata with its unknown fields.
func (m Metadata) MarshalJSON() ([]byte, error) { return encodeObject(m.fields(), m.Extra) }

// UnmarshalJSON reads metadata.
func (m *Metadata) UnmarshalJSON(data []byte) error {
	return decodeObject(data, nil, m.fields(), &m.Extra)
}

func (m *Metadata) fields() []field {
	return []field{
		always("createdBy", &m.CreatedBy),
		sometimes("lastUpdatedAt", &m.LastUpdatedAt),
		always("reason", &m.Reason),
		always("previousAgents", &m.PreviousAgents),
	}
}
