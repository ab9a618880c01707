package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/model"
)

// maxRefusals bounds how often one request is repeated without a part.
const maxRefusals = 12

// maxLowered bounds how often the limit of an answer is lowered for one request: a server that
// refuses each has another problem.
const maxLowered = 2

// refusedError is an error with what the server says.
type refusedError struct {
	err   *model.Error
	fault model.Fault
}

// Error returns the text of the error.
func (e *refusedError) Error() string { return e.err.Error() }

// Unwrap returns the error without what the server says.
func (e *refusedError) Unwrap() error { return e.err }

// refusal is a reply that may refuse a part of a request.
type refusal struct {
	err   *model.Error
	fault model.Fault
	// text is all that the server says.
	text string
	// tried are the keys of the parts that the request was repeated without.
	tried map[string]bool
}

// memory is what a caller knows of its server.
type memory struct {
	mu       sync.Mutex // guards all below
	recalled bool
	known    []model.Finding
}

// findings returns what is known of the server, with what other processes found out.
func (c *Caller) findings(ctx context.Context) []model.Finding {
	m := &c.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recalled || c.Findings == nil {
		return slices.Clone(m.known)
	}
	m.mu.Unlock() // the store can be slow
	kept, err := c.Findings.Recall(ctx, c.server(), c.End.Model())
	m.mu.Lock()
	if err == nil && !m.recalled { // otherwise the server is asked
		m.recalled = true
		m.known = append(m.known, slices.DeleteFunc(kept, m.knows)...)
	}
	return slices.Clone(m.known)
}

// knows reports whether a finding is known. The caller holds the lock.
func (m *memory) knows(f model.Finding) bool { return slices.Contains(m.known, f) }

// learn keeps findings, and returns those that were not known.
func (c *Caller) learn(ctx context.Context, found []model.Finding) []model.Finding {
	c.memory.mu.Lock()
	found = slices.DeleteFunc(found, c.memory.knows)
	c.memory.known = append(c.memory.known, found...)
	c.memory.mu.Unlock()
	if c.Findings != nil {
		for _, f := range found {
			_ = c.Findings.Keep(ctx, c.server(), c.End.Model(), f) // otherwise the next process asks again
		}
	}
	return found
}

// server is the address to which requests are sent, without a password.
func (c *Caller) server() string { return c.End.Server() + c.Path }

// attempt is the state of one request with its repetitions.
type attempt struct {
	c   *Caller
	req *model.Request
	// found are the findings of this request. They are kept when an answer proves them.
	found []model.Finding
	// lowered is how often the limit of the answer was lowered, most the present one, 0 for none.
	lowered, most int
	tried         map[string]bool
}

// Generate calls send with the options of a request, and again without a part that the
// model refuses.
func (c *Caller) Generate(ctx context.Context, req *model.Request,
	send func(Options) (*model.Response, error)) (*model.Response, error) {
	a := &attempt{c: c, req: req, tried: make(map[string]bool)}
	known := c.findings(ctx)
	for try := 0; ; try++ {
		sent, err := a.options(known)
		if err != nil {
			return nil, err
		}
		resp, err := send(sent)
		if err == nil {
			return a.addNotes(ctx, resp, &sent), nil
		}
		var refused *refusedError
		if !errors.As(err, &refused) {
			return nil, err
		}
		if try >= maxRefusals || !a.adapt(refused, &sent) {
			return nil, refused.err
		}
		if err := announce(ctx, req, refused.err); err != nil {
			return nil, model.Stopped(err, 1)
		}
	}
}

// options returns what is to be sent: all that the model is not known to refuse.
func (a *attempt) options(known []model.Finding) (Options, error) {
	o, full := a.c.options(a.req), a.c.options(a.req)
	for _, f := range slices.Concat(known, a.found) {
		o.leaveOut(f)
		if window, err := strconv.Atoi(f.Value); f.Part == partWindow && err == nil {
			o.fitWindow(window, a.req)
		}
	}
	if a.most > 0 && (o.MaxOutput == 0 || a.most < o.MaxOutput) {
		o.MaxOutput = a.most
	}
	if missing := full.missing(&o); a.req.Exact && missing != "" {
		return o, &model.Error{Kind: model.KindInvalid,
			Msg:  fmt.Sprintf("%s refuses the %s, and mode strict leaves out nothing", a.c.End.Where(), missing),
			Hint: "choose another model, or another mode (--mode seeded, --mode default)"}
	}
	return o, nil
}

// leastOutput is the least limit of an answer, in tokens, that is worth a request; frameTokens are
// those of the form of a conversation.
const (
	leastOutput = 256
	frameTokens = 64
)

// fitWindow lowers the limit of the answer to what a request leaves of a window, if that is enough.
func (o *Options) fitWindow(window int, req *model.Request) {
	used := Bytes(req, model.Render(req)) + len(o.Schema)
	for _, t := range o.Tools {
		used += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	if room := window - (used+2)/3 - frameTokens; room >= leastOutput && room < o.MaxOutput {
		o.MaxOutput = room
	}
}

// missing returns what the user asked for that the other options lack, for people.
func (o *Options) missing(other *Options) string {
	switch {
	case o.Seed != nil && other.Seed == nil:
		return "seed"
	case o.Temperature != nil && other.Temperature == nil:
		return "temperature"
	}
	for _, name := range o.paramNames() {
		if _, sent := other.Params[name]; !sent {
			return fmt.Sprintf("parameter %q", name)
		}
	}
	return ""
}

// adapt finds out what an error refuses, and reports whether the request is worth repeating.
func (a *attempt) adapt(e *refusedError, sent *Options) bool {
	r := &refusal{err: e.err, fault: e.fault, tried: a.tried,
		text: strings.Join([]string{e.fault.Param, e.fault.Code, e.fault.Type, e.fault.Message}, "\n")}
	if slices.Contains([]model.Kind{model.KindTooLong, model.KindAuth, model.KindRateLimit}, e.err.Kind) {
		return false
	}
	if limit, passed := e.fault.TokenLimit(r.status()); passed && limit.Output {
		return a.lower(limit, sent)
	}
	f, ok := r.find(sent)
	if !ok || a.tried[f.Part] {
		return false
	}
	a.tried[f.Part] = true
	a.found = append(a.found, f)
	return true
}

// lower lowers the limit of the answer to the one that a server names, or to half.
func (a *attempt) lower(limit model.TokenLimit, sent *Options) bool {
	if a.lowered++; a.lowered > maxLowered || sent.MaxOutput <= 1 || sent.LimitName == "" {
		return false
	}
	most := limit.Most
	if most <= 0 || most >= sent.MaxOutput {
		most = sent.MaxOutput / 2
	}
	a.most = most
	a.found = slices.DeleteFunc(a.found, func(f model.Finding) bool { return f.Part == partMaxOutput })
	if limit.Counted > 0 { // the limit depends on the length of the request
		a.found = append(a.found, model.Finding{Part: partWindow, Value: strconv.Itoa(limit.Most + limit.Counted)})
		return true
	}
	a.found = append(a.found, model.Finding{Part: partMaxOutput, Value: strconv.Itoa(most)})
	return true
}

// status returns the HTTP status; that of a wrong request for an error in a reply of status 200.
func (r *refusal) status() int {
	if r.err.Status == 0 {
		return http.StatusBadRequest
	}
	return r.err.Status
}

// find returns the finding that the refusal is. What the server names as the field counts before
// what it says.
func (r *refusal) find(sent *Options) (model.Finding, bool) {
	list := parts()
	for _, text := range []string{r.fault.Param, r.text} {
		if text == "" {
			continue
		}
		for i := range list {
			if p := &list[i]; p.sent(sent) && p.names(text, sent) && r.refuses(p.mentioned, p.statuses) {
				return model.Finding{Part: p.key(sent), Value: p.instead(sent, r)}, true
			}
		}
		for _, name := range sent.paramNames() {
			if reField(name).MatchString(text) && r.refuses(false, nil) && !reValue().MatchString(r.text) {
				return model.Finding{Part: partParam + name}, true
			}
		}
	}
	return model.Finding{}, false
}

// refuses reports whether the reply can refuse a part of a request. mentioned is set if it does not
// have to say so; further are statuses in addition to the usual ones.
func (r *refusal) refuses(mentioned bool, further []int) bool {
	switch r.status() {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented:
	default:
		if !slices.Contains(further, r.status()) {
			return false
		}
	}
	return mentioned || reRefuses().MatchString(r.text)
}

// announce announces that a request failed and that another one is sent.
func announce(ctx context.Context, req *model.Request, failed *model.Error) error {
	if req.OnFailed != nil {
		if err := req.OnFailed(ctx, failed); err != nil {
			return err
		}
	}
	if req.OnSend == nil {
		return nil
	}
	return req.OnSend(ctx, "")
}

// addNotes keeps what the request found out, and adds what was not sent to the notes of an answer.
func (a *attempt) addNotes(ctx context.Context, resp *model.Response, sent *Options) *model.Response {
	full := a.c.options(a.req)
	if full.Temperature != nil && sent.Temperature == nil {
		resp.Notes = append(resp.Notes, model.NoteNoTemperature)
	}
	if full.Seed != nil && sent.Seed == nil {
		resp.Notes = append(resp.Notes, model.NoteNoSeed)
	}
	if full.Schema != nil && (sent.Schema == nil || sent.JSONObject) {
		resp.Notes = append(resp.Notes, model.NoteNoSchema)
	}
	for _, name := range full.paramNames() {
		if _, ok := sent.Params[name]; !ok {
			resp.Notes = append(resp.Notes, fmt.Sprintf("the parameter %q was not sent: the server refuses it", name))
		}
	}
	for _, f := range a.c.learn(ctx, a.found) {
		if !hasNote(f.Part) {
			resp.Notes = append(resp.Notes, noteOnce(f))
		}
	}
	return resp
}

// hasNote reports whether answers without a part have a note of their own, or need none.
func hasNote(part string) bool {
	return slices.Contains([]string{"tools", "cache_control", "seed", "json_object"}, part) ||
		strings.HasPrefix(part, "temperature=") || strings.HasPrefix(part, "schema ") || strings.HasPrefix(part, partParam)
}

// What servers say of the parts. Servers that hold answers to schemas with tools name these.
var (
	reSchema        = lazyregexp.New(`(?i)response_?format|schema|structured output|\btools?\b|tool_choice|grammar`)
	reSchemaForm    = lazyregexp.New(`(?i)json_schema|json_object|response_?format.{0,10} type`)
	reShared        = lazyregexp.New(`(?i)cache_control`)
	reTools         = lazyregexp.New(`(?i)\btools?\b|tool_choice|tool-choice|function`)
	reTemperature   = lazyregexp.New(`(?i)temperature`)
	reSeed          = lazyregexp.New(`(?i)(^|[^\w])seed\b`)
	reStreamOptions = lazyregexp.New(`(?i)stream_options|include_usage`)
	reStream        = lazyregexp.New(`(?i)\bstream(ing|ed)?\b|text/event-stream`)
	reDeveloper     = lazyregexp.New(`(?i)developer`)
	reSystem        = lazyregexp.New(`(?i)\bsystem['"` + "`" + `]? ?(role|message|prompt|instruction|` +
		`is not)|\broles?\b.{0,40}\bsystem\b|` +
		`roles? (must|should|need to) (be )?alternat|only user and assistant roles|developer (instruction|role|message)|` +
		`messages\[0\]\.role|messages\.0\.role|(unexpected|unknown|invalid|unsupported) (message )?role|` +
		`does not support system`)
	// reRefuses says that a field is not taken.
	reRefuses = lazyregexp.New(`(?i)unsupported|not (yet )?(supported|permitted|allowed|available|enabled|accepted|` +
		`recogni[sz]ed|` +
		`implemented|compatible|valid)|(does|do)(n't| not) (support|accept|allow|take)|unrecogni[sz]ed|unknown|unexpected|` +
		`unavailable|` +
		`extra|deprecated|cannot (find|be)|must be verified|no such|disabled|incompatible|not_supported|invalid|only|不支持|` +
		`未知|无效`)
	// reValue says that a field is taken, but not with this value.
	reValue = lazyregexp.New(`(?i)invalid value|must be (one of|between|a |an |less|greater|at )|expected|` +
		`supported values|` +
		`less than|greater than|out of range|should be`)
)

// matches returns a function that reports whether a text matches.
func matches(re *regexp.Regexp) func(string, *Options) bool {
	return func(text string, _ *Options) bool { return re.MatchString(text) }
}

// reField matches the name of a field.
func reField(name string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w])` + regexp.QuoteMeta(name) + `($|[^\w])`)
}

// IsObject reports whether a schema allows objects only.
func IsObject(schema json.RawMessage) bool {
	var s struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}
