package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/perdure/perdure"
)

// causeBody is what all changes of variables have in their body.
type causeBody struct {
	Source     string `json:"source,omitempty"`
	Reason     string `json:"reason,omitempty"`
	IfVersion  string `json:"if_version,omitempty"`
	CancelRest bool   `json:"cancel_rest,omitempty"`
}

func causeOf(cause perdure.Cause) causeBody {
	b := causeBody{Source: cause.Source, Reason: cause.Reason, CancelRest: cause.CancelRest}
	if cause.IfVersion != nil {
		b.IfVersion = "none"
		if *cause.IfVersion != 0 {
			b.IfVersion = cause.IfVersion.String()
		}
	}
	return b
}

// checkName refuses names of dots only, which a URL path would not keep.
func checkName(op, name string) error {
	if strings.Trim(name, ".") != "" {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%q is not a variable's name", name),
		Hint: "a name has letters, digits and underscores and does not begin with a digit"}
}

// variable sends a request about the variable with a name; the path of the request
// follows the name.
func (c *Client) variable(ctx context.Context, ref perdure.StateRef, name string, r *request) (perdure.Variable,
	error) {
	if err := checkName(r.op, name); err != nil {
		return perdure.Variable{}, err
	}
	r.path, r.query = "/v1/variables/"+url.PathEscape(name)+r.path, refQuery(ref)
	return do[perdure.Variable](ctx, c, r)
}

// Var returns a variable. In the scope of a tree it looks at the task, then at
// those above it, then at the session of the reference if it names one, then at
// the global state.
func (c *Client) Var(ctx context.Context, ref perdure.StateRef, name string) (perdure.Variable, error) {
	return c.variable(ctx, ref, name, &request{op: "read variable", method: http.MethodGet})
}

// VarPage is a part of a list of variables.
type VarPage struct {
	Variables []perdure.Variable `json:"variables"`
	// Next, when not empty, is where the list continues.
	Next string `json:"next"`
}

// Vars lists the variables of one state by name, without those it inherits and
// without values that are longer than perdure.MaxInlineBytes.
func (c *Client) Vars(ctx context.Context, ref perdure.StateRef, f perdure.VarFilter) (VarPage, error) {
	page, err := get[VarPage](ctx, c, "list variables", "/v1/variables",
		refQuery(ref, "after", f.After, "limit", f.Limit))
	for i := range page.Variables {
		if page.Variables[i].Size > perdure.MaxInlineBytes {
			page.Variables[i].Value = nil // it is left out, not null
		}
	}
	return page, err
}

// AllVars yields the variables of one state, page by page. An error is yielded
// last.
func (c *Client) AllVars(ctx context.Context, ref perdure.StateRef) iter.Seq2[perdure.Variable, error] {
	return pages("", func(after string) ([]perdure.Variable, string, error) {
		page, err := c.Vars(ctx, ref, perdure.VarFilter{After: after})
		return page.Variables, page.Next, err
	})
}

// SetVar gives a variable a value, and creates it when it is not there. Setting
// Final of a tree or task to anything but null completes it.
func (c *Client) SetVar(ctx context.Context, ref perdure.StateRef, spec perdure.VarSpec) (perdure.Variable, error) {
	if !json.Valid(spec.Value) {
		return perdure.Variable{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "set variable", Msg: "the value is not JSON"}
	}
	body := struct {
		Value       json.RawMessage `json:"value"`
		Type        perdure.VarType `json:"type,omitempty"`
		Description string          `json:"description,omitempty"`
		ReadOnly    bool            `json:"read_only,omitempty"`
		TTLSeconds  float64         `json:"ttl_seconds,omitempty"`
		causeBody
	}{spec.Value, spec.Type, spec.Description, spec.ReadOnly, spec.TTL.Seconds(), causeOf(spec.Cause)}
	return c.variable(ctx, ref, spec.Name, &request{op: "set variable", method: http.MethodPut, body: &body})
}

// DeleteVar removes a variable.
func (c *Client) DeleteVar(ctx context.Context, ref perdure.StateRef, name string, cause perdure.Cause) error {
	body := causeOf(cause)
	_, err := c.variable(ctx, ref, name, &request{op: "delete variable", method: http.MethodDelete, body: &body})
	return err
}

// RenameVar gives a variable another name, which must be free.
func (c *Client) RenameVar(ctx context.Context, ref perdure.StateRef, from, to string, cause perdure.Cause) (
	perdure.Variable, error) {
	body := struct {
		To string `json:"to"`
		causeBody
	}{to, causeOf(cause)}
	return c.variable(ctx, ref, from, &request{op: "rename variable", method: http.MethodPost, path: "/rename",
		body: &body})
}

// IncrVar adds to a number, atomically; a variable that is not there counts as
// 0. The request is sent once: when the connection breaks, whether it was done
// is not known.
func (c *Client) IncrVar(ctx context.Context, ref perdure.StateRef, name string, by json.Number,
	cause perdure.Cause) (perdure.Variable, error) {
	body := struct {
		By json.Number `json:"by"`
		causeBody
	}{by, causeOf(cause)}
	return c.variable(ctx, ref, name, &request{op: "increment variable", method: http.MethodPost, path: "/increment",
		body: &body})
}

// AppendVar adds a value to the end of an array, atomically; a variable that is
// not there counts as empty. The request is sent once, as that of IncrVar.
func (c *Client) AppendVar(ctx context.Context, ref perdure.StateRef, name string, value json.RawMessage,
	cause perdure.Cause) (perdure.Variable, error) {
	if !json.Valid(value) {
		return perdure.Variable{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "append to variable",
			Msg: "the value is not JSON"}
	}
	body := struct {
		Value json.RawMessage `json:"value"`
		causeBody
	}{value, causeOf(cause)}
	return c.variable(ctx, ref, name, &request{op: "append to variable", method: http.MethodPost, path: "/append",
		body: &body})
}
