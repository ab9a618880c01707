package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/perdure/perdure"
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

// cause reads the precondition from the body or from the headers If-Match and
// If-None-Match, as they are for HTTP.
func (c *causeRequest) cause(op string, r *http.Request) (perdure.Cause, error) {
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

func (s *server) variables(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	ref := q.ref()
	filter := perdure.VarFilter{After: q.text("after"), Limit: q.limit(defaultPage)}
	if err := q.done(); err != nil {
		return err
	}
	ref, err := s.resolve(r, ref)
	if err != nil {
		return err
	}
	list, err := s.store.Vars(r.Context(), ref, filter)
	if err != nil {
		return err
	}
	page := struct {
		Variables []perdure.Variable `json:"variables"`
		Next      string             `json:"next"`
	}{Variables: list}
	if len(list) == filter.Limit {
		page.Next = list[len(list)-1].Name
	}
	return s.reply(w, http.StatusOK, page)
}

// replyVariable answers with a variable, its version as the entity's tag.
func (s *server) replyVariable(w http.ResponseWriter, v perdure.Variable) error {
	if v.Version != 0 {
		w.Header().Set("ETag", `"`+v.Version.String()+`"`)
	}
	return s.reply(w, http.StatusOK, v)
}

func (s *server) variable(w http.ResponseWriter, r *http.Request) error {
	ref, err := s.readRef(r)
	if err != nil {
		return err
	}
	v, err := s.store.Var(r.Context(), ref, r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.replyVariable(w, v)
}

// variableRequest is the body of PUT /v1/variables/{name}.
type variableRequest struct {
	Value       json.RawMessage `json:"value"`
	Type        perdure.VarType `json:"type"`
	Description string          `json:"description"`
	ReadOnly    bool            `json:"read_only"`
	TTLSeconds  float64         `json:"ttl_seconds"`
	causeRequest
}

func (s *server) setVariable(w http.ResponseWriter, r *http.Request) error {
	const op = "set variable"
	var body variableRequest
	ref, err := s.change(w, r, &body, s.valueBytes())
	if err != nil {
		return err
	}
	if body.Value == nil {
		return invalid(op, `field "value" is missing`, "it is any JSON value")
	}
	if body.TTLSeconds < 0 || body.TTLSeconds > maxSeconds {
		return invalid(op, fmt.Sprintf("field \"ttl_seconds\" is %g, seconds up to %d are needed", body.TTLSeconds,
			maxSeconds), "")
	}
	cause, err := body.cause(op, r)
	if err != nil {
		return err
	}
	v, err := s.store.SetVar(r.Context(), ref, perdure.VarSpec{Name: r.PathValue("name"), Value: body.Value,
		Type:        body.Type,
		Description: body.Description, ReadOnly: body.ReadOnly, TTL: time.Duration(body.TTLSeconds * float64(time.Second)),
		Cause: cause})
	if err != nil {
		return err
	}
	return s.replyVariable(w, v)
}

// valueBytes is how large a body with a value may be.
func (s *server) valueBytes() int64 { return max(s.limits.JSONBytes, s.limits.ValueBytes+restBytes) }

// change reads the state and the body of a change.
func (s *server) change(w http.ResponseWriter, r *http.Request, body any, limit int64) (perdure.StateRef, error) {
	ref, err := s.readRef(r)
	if err != nil {
		return ref, err
	}
	return ref, s.decodeUpTo(w, r, body, limit)
}

func (s *server) deleteVariable(w http.ResponseWriter, r *http.Request) error {
	var body causeRequest
	ref, err := s.change(w, r, &body, s.limits.JSONBytes)
	if err != nil {
		return err
	}
	cause, err := body.cause("delete variable", r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := s.store.DeleteVar(r.Context(), ref, name, cause); err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Deleted string `json:"deleted"`
	}{name})
}

func (s *server) renameVariable(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		To string `json:"to"`
		causeRequest
	}
	ref, err := s.change(w, r, &body, s.limits.JSONBytes)
	if err != nil {
		return err
	}
	cause, err := body.cause("rename variable", r)
	if err != nil {
		return err
	}
	v, err := s.store.RenameVar(r.Context(), ref, r.PathValue("name"), body.To, cause)
	if err != nil {
		return err
	}
	// It is renamed; the answer has its value until another caller changes it.
	if now, err := s.store.Var(r.Context(), ref, body.To); err == nil && now.Version == v.Version {
		v = now
	}
	return s.replyVariable(w, v)
}

func (s *server) incrementVariable(w http.ResponseWriter, r *http.Request) error {
	const op = "increment variable"
	body := struct {
		By json.RawMessage `json:"by"`
		causeRequest
	}{By: json.RawMessage("1")}
	ref, err := s.change(w, r, &body, s.limits.JSONBytes)
	if err != nil {
		return err
	}
	var by json.Number
	if err := json.Unmarshal(body.By, &by); err != nil || by == "" || body.By[0] == '"' {
		return invalid(op, `field "by" is not a number`, "")
	}
	cause, err := body.cause(op, r)
	if err != nil {
		return err
	}
	v, err := s.store.IncrVar(r.Context(), ref, r.PathValue("name"), by, cause)
	if err != nil {
		return err
	}
	return s.replyVariable(w, v)
}

func (s *server) appendVariable(w http.ResponseWriter, r *http.Request) error {
	const op = "append to variable"
	var body struct {
		Value json.RawMessage `json:"value"`
		causeRequest
	}
	ref, err := s.change(w, r, &body, s.valueBytes())
	if err != nil {
		return err
	}
	if body.Value == nil {
		return invalid(op, `field "value" is missing`, "it is any JSON value")
	}
	cause, err := body.cause(op, r)
	if err != nil {
		return err
	}
	v, err := s.store.AppendVar(r.Context(), ref, r.PathValue("name"), body.Value, cause)
	if err != nil {
		return err
	}
	return s.replyVariable(w, v)
}
