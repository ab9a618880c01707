package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// restBytes is the size limit of the body of a change without the value.
const restBytes = 64 << 10

// noVersion is the version of a variable that must not exist.
const noVersion = "none"

// causeRequest is what all changes of variables have in their body.
type causeRequest struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	// IfVersion is a mutation's ID, or "none".
	IfVersion  string `json:"if_version"`
	CancelRest bool   `json:"cancel_rest"`
}

// cause returns the cause with the precondition, which is in the body or in the headers
// If-Match and If-None-Match.
func (c *causeRequest) cause(op string, r *request) (perdure.Cause, error) {
	out := perdure.Cause{Source: c.Source, Reason: c.Reason, CancelRest: c.CancelRest}
	version, where := c.IfVersion, `field "if_version"`
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	given := 0
	for _, text := range []string{version, match, none} {
		if text != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return out, nil
	case given > 1:
		return out, invalid(op, "several preconditions are given", "give one of if_version, If-Match and If-None-Match")
	case match != "":
		unquoted := strings.TrimSuffix(strings.TrimPrefix(match, `"`), `"`)
		if len(unquoted) != len(match)-2 {
			return out, invalid(op, "the header If-Match is not a version in quotes", `it looks like "mut-1a2b3c4d"`)
		}
		version, where = unquoted, "the header If-Match"
	case none == "*":
		version = noVersion
	case none != "":
		return out, invalid(op, "the header If-None-Match is not *", "* stands for a variable that does not exist")
	}
	var id perdure.MutationID
	if version != noVersion {
		if err := id.UnmarshalText([]byte(version)); err != nil {
			return out, invalid(op, fmt.Sprintf("%s is %q, which is not a version", where, version),
				`a version looks like mut-1a2b3c4d; "none" stands for a variable that does not exist`)
		}
	}
	out.IfVersion = &id
	return out, nil
}

func (s *server) variables(r *request) (any, error) {
	filter := perdure.VarFilter{After: r.text("after"), Limit: r.limit(defaultPage)}
	ref, err := s.ref(r)
	if err != nil {
		return nil, err
	}
	list, err := s.store.Vars(r.Context(), ref, filter)
	return client.VarPage{Variables: list,
		Next: next(list, filter.Limit, func(v *perdure.Variable) string { return v.Name })}, err
}

// tagged is the answer with a variable, its version as the entity's tag.
func (r *request) tagged(v perdure.Variable, err error) (any, error) {
	if err == nil && v.Version != 0 {
		r.w.Header().Set("ETag", `"`+v.Version.String()+`"`)
	}
	return v, err
}

func (s *server) variable(r *request) (any, error) {
	ref, err := s.ref(r)
	if err != nil {
		return nil, err
	}
	return r.tagged(s.store.Var(r.Context(), ref, r.PathValue("name")))
}

type variableRequest struct {
	Value       json.RawMessage `json:"value"`
	Type        perdure.VarType `json:"type"`
	Description string          `json:"description"`
	ReadOnly    bool            `json:"read_only"`
	TTLSeconds  float64         `json:"ttl_seconds"`
	causeRequest
}

func (s *server) setVariable(r *request) (any, error) {
	const op = "set variable"
	var body variableRequest
	ref, err := s.change(r, &body, s.valueBytes())
	if err != nil {
		return nil, err
	}
	if body.Value == nil {
		return nil, invalid(op, `field "value" is missing`, "it is any JSON value")
	}
	if body.TTLSeconds < 0 || body.TTLSeconds > maxSeconds {
		return nil, invalid(op, fmt.Sprintf("field \"ttl_seconds\" is %g, seconds up to %d are needed", body.TTLSeconds,
			maxSeconds), "")
	}
	cause, err := body.cause(op, r)
	if err != nil {
		return nil, err
	}
	return r.tagged(s.store.SetVar(r.Context(), ref, perdure.VarSpec{Name: r.PathValue("name"), Value: body.Value,
		Type: body.Type, Description: body.Description, ReadOnly: body.ReadOnly,
		TTL: time.Duration(body.TTLSeconds * float64(time.Second)), Cause: cause}))
}

// valueBytes is how large a body with a value may be.
func (s *server) valueBytes() int64 { return max(s.limits.JSONBytes, s.limits.ValueBytes+restBytes) }

func (s *server) deleteVariable(r *request) (any, error) {
	var body causeRequest
	ref, err := s.change(r, &body, s.limits.JSONBytes)
	if err != nil {
		return nil, err
	}
	cause, err := body.cause("delete variable", r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	return object{"deleted": name}, s.store.DeleteVar(r.Context(), ref, name, cause)
}

func (s *server) renameVariable(r *request) (any, error) {
	var body struct {
		To string `json:"to"`
		causeRequest
	}
	ref, err := s.change(r, &body, s.limits.JSONBytes)
	if err != nil {
		return nil, err
	}
	cause, err := body.cause("rename variable", r)
	if err != nil {
		return nil, err
	}
	v, err := s.store.RenameVar(r.Context(), ref, r.PathValue("name"), body.To, cause)
	if err != nil {
		return nil, err
	}
	// It is renamed; the answer has its value until another caller changes it.
	if now, err := s.store.Var(r.Context(), ref, body.To); err == nil && now.Version == v.Version {
		v = now
	}
	return r.tagged(v, nil)
}

func (s *server) incrementVariable(r *request) (any, error) {
	const op = "increment variable"
	body := struct {
		By json.RawMessage `json:"by"`
		causeRequest
	}{By: json.RawMessage("1")}
	ref, err := s.change(r, &body, s.limits.JSONBytes)
	if err != nil {
		return nil, err
	}
	var by json.Number
	if err := json.Unmarshal(body.By, &by); err != nil || by == "" || body.By[0] == '"' {
		return nil, invalid(op, `field "by" is not a number`, "")
	}
	cause, err := body.cause(op, r)
	if err != nil {
		return nil, err
	}
	return r.tagged(s.store.IncrVar(r.Context(), ref, r.PathValue("name"), by, cause))
}

func (s *server) appendVariable(r *request) (any, error) {
	const op = "append to variable"
	var body struct {
		Value json.RawMessage `json:"value"`
		causeRequest
	}
	ref, err := s.change(r, &body, s.valueBytes())
	if err != nil {
		return nil, err
	}
	if body.Value == nil {
		return nil, invalid(op, `field "value" is missing`, "it is any JSON value")
	}
	cause, err := body.cause(op, r)
	if err != nil {
		return nil, err
	}
	return r.tagged(s.store.AppendVar(r.Context(), ref, r.PathValue("name"), body.Value, cause))
}
