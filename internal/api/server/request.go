package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

const opRead = "read request"

// Page sizes of lists.
const (
	defaultPage = 100
	maxPage     = 1000
)

// maxDepth is how deep the JSON of a request can be nested, as deep as the standard
// library reads.
const maxDepth = 10_000

// request reads the path, the parameters and the body of a request. Its methods keep
// the first error; done returns it, or reports an unknown parameter.
type request struct {
	*http.Request
	w         http.ResponseWriter
	jsonBytes int64
	values    url.Values
	known     []string
	store     *perdure.Store
	err       error
}

func (s *server) request(w http.ResponseWriter, hr *http.Request) *request {
	values, err := url.ParseQuery(hr.URL.RawQuery)
	r := &request{Request: hr, w: w, jsonBytes: s.limits.JSONBytes, values: values,
		store: s.store}
	if err != nil {
		r.fail("the query of the URL is malformed", "")
	}
	return r
}

func (r *request) fail(msg, hint string) { r.keep(invalid(opRead, msg, hint)) }

func (r *request) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

// done returns the first error.
func (r *request) done() error {
	for name := range r.values {
		if !slices.Contains(r.known, name) {
			hint := "this request takes no parameters"
			if len(r.known) > 0 {
				hint = "known parameters are " + strings.Join(r.known, ", ")
			}
			r.fail(fmt.Sprintf("unknown parameter %q", name), hint)
		}
	}
	return r.err
}

// text returns a parameter, "" when it is missing.
func (r *request) text(name string) string {
	r.known = append(r.known, name)
	all := r.values[name]
	if len(all) > 1 {
		r.fail(fmt.Sprintf("parameter %q appears %d times, expected once", name, len(all)), "")
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// list returns the values of a parameter that may be repeated or hold several
// separated by commas.
func (r *request) list(name string) []string {
	r.known = append(r.known, name)
	var list []string
	for _, one := range r.values[name] {
		list = append(list, strings.Split(one, ",")...)
	}
	return list
}

func (r *request) flag(name string) bool {
	switch v := r.text(name); v {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	default:
		r.fail(fmt.Sprintf("parameter %q is %q, expected true or false", name, v), "")
		return false
	}
}

func (r *request) number(name string, low, high, missing int64) int64 {
	v := r.text(name)
	if v == "" {
		return missing
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < low || n > high {
		r.fail(fmt.Sprintf("parameter %q is %q, expected a number from %d to %d", name, v, low, high), "")
	}
	return n
}

func (r *request) limit(missing int64) int { return int(r.number("limit", 1, maxPage, missing)) }

// duration reads a time as 30s or 1m; one above high is taken for high.
func (r *request) duration(name string, high time.Duration) time.Duration {
	v := r.text(name)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		r.fail(fmt.Sprintf("parameter %q is %q, expected a duration", name, v), "write it as in 30s or 5m")
	}
	return min(d, high)
}

// parsed reads an ID; without one it returns the zero value.
func parsed[T any](r *request, id string, parse func(string) (T, error)) (value T) {
	if id == "" {
		return value
	}
	value, err := parse(id)
	r.keep(err)
	return value
}

func (r *request) tree(name string) perdure.TreeID {
	return parsed(r, r.text(name), r.findTree)
}

func (r *request) task(name string) perdure.TaskID {
	return parsed(r, r.text(name), r.findTask)
}

func (r *request) pathTree() perdure.TreeID { return parsed(r, r.PathValue("id"), r.findTree) }

func (r *request) pathTask() perdure.TaskID { return parsed(r, r.PathValue("id"), r.findTask) }

// findTree reads the ID of a tree or the beginning of one.
func (r *request) findTree(text string) (perdure.TreeID, error) {
	return r.store.FindTree(r.Context(), text)
}

// findTask reads the ID of a task or the beginning of one.
func (r *request) findTask(text string) (perdure.TaskID, error) {
	id, err := perdure.ParseTaskID(text)
	if err != nil {
		return 0, err
	}
	return r.store.FindTask(r.Context(), id)
}

func (r *request) tasks(name string) []perdure.TaskID {
	var ids []perdure.TaskID
	for _, v := range r.list(name) {
		id, err := perdure.ParseTaskID(v)
		r.keep(err)
		ids = append(ids, id)
	}
	if len(ids) > maxPage {
		r.fail(fmt.Sprintf("parameter %q names %d tasks, at most %d are allowed", name, len(ids), maxPage), "")
	}
	return ids
}

func (r *request) states(name string) []perdure.State {
	var states []perdure.State
	known := []perdure.State{perdure.Queued, perdure.Running, perdure.Waiting,
		perdure.Completed, perdure.Failed, perdure.Cancelled}
	for _, v := range r.list(name) {
		if !slices.Contains(known, perdure.State(v)) {
			r.fail(fmt.Sprintf("parameter %q contains the unknown state %q", name, v), fmt.Sprintf("states are %v", known))
		}
		states = append(states, perdure.State(v))
	}
	return states
}

// body reads the JSON object of the request into what v points to, strictly: a field
// that v does not have or that appears twice, null instead of the object, text that is
// not UTF-8 and anything after the object are errors. No body counts as {}. It is called
// after all parameters are read, and returns the first error as done does.
func (r *request) body(v any) error { return r.bodyUpTo(v, r.jsonBytes) }

// bodyUpTo is body with another limit on the size.
func (r *request) bodyUpTo(v any, limit int64) error {
	if r.done() == nil {
		r.keep(r.decode(v, limit))
	}
	return r.err
}

func (r *request) decode(v any, limit int64) error {
	if enc := r.Header.Get("Content-Encoding"); enc != "" {
		return invalid(opRead, fmt.Sprintf("content encoding %q is not supported", enc), "send the body without encoding")
	}
	body, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, limit))
	if err != nil {
		return bodyError(err, "JSON body")
	}
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 {
		return nil
	}
	if trimmed[0] != '{' {
		return invalid(opRead, "the body is not a JSON object", `send an object, as in {"prompt": "…"}`)
	}
	err = jsontree.Decode(body, v, jsontree.Options{File: "body", MaxDepth: maxDepth})
	if e := new(jsontree.Error); errors.As(err, &e) {
		return invalid(opRead, e.Error(), e.Hint)
	}
	var own *perdure.Error
	if err != nil && !errors.As(err, &own) {
		return invalid(opRead, "the body is not valid: "+strings.TrimPrefix(err.Error(), "json: "), "")
	}
	return err
}

// bodyError returns why a body could not be read: it is too large, or cut.
func bodyError(err error, what string) error {
	if late := lateBody(err, what); late != nil {
		return late
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &statusError{status: http.StatusRequestEntityTooLarge, err: invalid(opRead,
			fmt.Sprintf("the %s is larger than the limit of %d bytes", what, large.Limit), "")}
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: opRead, Msg: "the " + what + " ends too early", Err: err}
}
