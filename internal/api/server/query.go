package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// Page sizes of lists.
const (
	defaultPage = 100
	maxPage     = 1000
)

// query reads the parameters of a request. Its methods remember the first
// thing that was wrong; done returns it, or reports an unknown parameter.
type query struct {
	values url.Values
	known  []string
	err    error
}

func readQuery(r *http.Request) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.fail("the query of the URL is malformed", "")
	}
	return q
}

func (q *query) fail(msg, hint string) {
	if q.err == nil {
		q.err = invalid(opRead, msg, hint)
	}
}

// text returns a parameter, "" when it is not there.
func (q *query) text(name string) string {
	q.known = append(q.known, name)
	all := q.values[name]
	if len(all) > 1 {
		q.fail(fmt.Sprintf("parameter %q is there %d times", name, len(all)), "")
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// list returns the values of a parameter that may be repeated or hold several
// separated by commas.
func (q *query) list(name string) []string {
	q.known = append(q.known, name)
	var list []string
	for _, one := range q.values[name] {
		list = append(list, strings.Split(one, ",")...)
	}
	return list
}

func (q *query) flag(name string) bool {
	switch v := q.text(name); v {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	default:
		q.fail(fmt.Sprintf("parameter %q is %q, true or false is needed", name, v), "")
		return false
	}
}

func (q *query) number(name string, low, high, missing int64) int64 {
	v := q.text(name)
	if v == "" {
		return missing
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < low || n > high {
		q.fail(fmt.Sprintf("parameter %q is %q, a number from %d to %d is needed", name, v, low, high), "")
	}
	return n
}

func (q *query) limit(missing int64) int { return int(q.number("limit", 1, maxPage, missing)) }

// duration reads a time as 30s or 1m; one above high is taken for high.
func (q *query) duration(name string, high time.Duration) time.Duration {
	v := q.text(name)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		q.fail(fmt.Sprintf("parameter %q is %q, a duration is needed", name, v), "a duration looks like 30s")
	}
	return min(d, high)
}

func (q *query) tree(name string) perdure.TreeID {
	v := q.text(name)
	if v == "" {
		return ""
	}
	id, err := perdure.ParseTreeID(v)
	q.keep(err)
	return id
}

func (q *query) task(name string) perdure.TaskID {
	v := q.text(name)
	if v == "" {
		return 0
	}
	id, err := perdure.ParseTaskID(v)
	q.keep(err)
	return id
}

func (q *query) tasks(name string) []perdure.TaskID {
	var ids []perdure.TaskID
	for _, v := range q.list(name) {
		id, err := perdure.ParseTaskID(v)
		q.keep(err)
		ids = append(ids, id)
	}
	if len(ids) > maxPage {
		q.fail(fmt.Sprintf("parameter %q names %d tasks, at most %d are possible", name, len(ids), maxPage), "")
	}
	return ids
}

func (q *query) states(name string) []perdure.State {
	var states []perdure.State
	known := []perdure.State{perdure.Queued, perdure.Running, perdure.Waiting,
		perdure.Completed, perdure.Failed, perdure.Cancelled}
	for _, v := range q.list(name) {
		if !slices.Contains(known, perdure.State(v)) {
			q.fail(fmt.Sprintf("parameter %q holds %q, which is not a state", name, v), fmt.Sprintf("states are %v", known))
		}
		states = append(states, perdure.State(v))
	}
	return states
}

func (q *query) keep(err error) {
	if q.err == nil {
		q.err = err
	}
}

// done returns the first thing that was wrong.
func (q *query) done() error {
	for name := range q.values {
		if !slices.Contains(q.known, name) {
			hint := "this request takes no parameters"
			if len(q.known) > 0 {
				hint = "known parameters are " + strings.Join(q.known, ", ")
			}
			q.fail(fmt.Sprintf("unknown parameter %q", name), hint)
		}
	}
	return q.err
}

// noQuery refuses any parameter.
func noQuery(r *http.Request) error { return readQuery(r).done() }

func pathTree(r *http.Request) (perdure.TreeID, error) { return perdure.ParseTreeID(r.PathValue("id")) }

func pathTask(r *http.Request) (perdure.TaskID, error) { return perdure.ParseTaskID(r.PathValue("id")) }
