package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
)

// Methods of the protocol that this client uses.
const (
	methodInitialize   = "initialize"
	methodAuthenticate = "authenticate"
	methodNew          = "session/new"
	methodLoad         = "session/load"
	methodResume       = "session/resume"
	methodSetMode      = "session/set_mode"
	methodSetModel     = "session/set_model"
	methodSetOption    = "session/set_config_option"
	methodPrompt       = "session/prompt"
	methodCancel       = "session/cancel"
	methodUpdate       = "session/update"
	methodPermission   = "session/request_permission"
	methodTakeBack     = "$/cancel_request"
	// methodNothing is an extension that no agent has: the refusal shows that
	// everything before it was handled.
	methodNothing = "_perdure/nothing"
)

// protocolVersion is the version of the wire that this client speaks.
const protocolVersion = 1

// greeting is the result of initialize.
type greeting struct {
	ProtocolVersion count `json:"protocolVersion"`
	Capabilities    struct {
		LoadSession bool `json:"loadSession"`
		Session     struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	AuthMethods []named `json:"authMethods"`
	Info        struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
}

// sessionInfo is the result of session/new, session/load and session/resume.
type sessionInfo struct {
	SessionID string `json:"sessionId"`
	Modes     struct {
		Available []named `json:"availableModes"`
	} `json:"modes"`
	Models struct {
		Available []named `json:"availableModels"`
		Current   string  `json:"currentModelId"`
	} `json:"models"`
	Options []configOption `json:"configOptions"`
}

// named is something that a session offers.
type named struct {
	ID      string `json:"id"`
	ModelID string `json:"modelId"` // of models
}

func (n named) cleanID() string { return clean(n.ID) }

// configOption is an option of a session.
type configOption struct {
	ID       string         `json:"id"`
	Category string         `json:"category"`
	Type     string         `json:"type"`
	Current  any            `json:"currentValue"`
	Options  []configChoice `json:"options"`
}

// configChoice is a value of an option, or a group of values.
type configChoice struct {
	Value   string         `json:"value"`
	Options []configChoice `json:"options"`
}

// values returns all values of an option.
func (o *configOption) values() []string { return valuesOf(o.Options) }

func valuesOf(choices []configChoice) []string {
	var values []string
	for _, c := range choices {
		if c.Value != "" {
			values = append(values, c.Value)
		}
		values = append(values, valuesOf(c.Options)...)
	}
	return values
}

// open greets the agent and begins or continues the session.
func (r *run) open(ctx context.Context) *agent.Error {
	hello, err := r.greet(ctx)
	if err != nil {
		return err
	}
	if method := r.a.cfg.AuthMethod; method != "" {
		if _, err := r.call(ctx, methodAuthenticate, map[string]any{"methodId": method}); err != nil {
			return err
		}
	}
	rep, err := r.begin(ctx, hello)
	if err != nil {
		return err
	}
	if r.session == "" {
		return &agent.Error{Kind: agent.KindInvalid, Msg: "agent began a session without an ID",
			Hint: hintFor(agent.KindInvalid)}
	}
	var info sessionInfo
	_ = jsonrpc.Lenient(rep.Result, &info) // invalid fields are not used
	return r.configure(ctx, &info)
}

// greet says what this client can do and asks what the agent can.
func (r *run) greet(ctx context.Context) (*greeting, *agent.Error) {
	rep, err := r.call(ctx, methodInitialize, map[string]any{
		"protocolVersion": protocolVersion,
		"clientCapabilities": map[string]any{
			"fs":       map[string]any{"readTextFile": false, "writeTextFile": false},
			"terminal": false,
			"session":  map[string]any{"notices": map[string]any{}, "compaction": map[string]any{}},
		},
		"clientInfo": map[string]any{"name": "perdure", "title": "perdure", "version": "1"},
	})
	if err != nil {
		return nil, err
	}
	r.greeted.Store(true)
	var hello greeting
	_ = jsonrpc.Lenient(rep.Result, &hello) // checked below
	r.a.cfg.Logger.Debug("agent answered", "agent", clean(hello.Info.Name), "version", clean(hello.Info.Version))
	if hello.ProtocolVersion != protocolVersion {
		return nil, &agent.Error{
			Kind: agent.KindInvalid, Hint: hintFor(agent.KindInvalid),
			Msg: fmt.Sprintf("agent speaks version %d of the protocol, not %d", hello.ProtocolVersion, protocolVersion),
		}
	}
	return &hello, nil
}

// begin begins a fresh session or continues the turn's, without a replay of its
// history where the agent can do so.
func (r *run) begin(ctx context.Context, hello *greeting) (jsonrpc.Reply, *agent.Error) {
	params := map[string]any{"cwd": r.turn.Dir, "mcpServers": []any{}}
	if r.steering.meta != nil {
		params["_meta"] = r.steering.meta
	}
	if r.turn.Session == "" {
		rep, err := r.callThen(ctx, methodNew, params, r.begun)
		if err != nil && err.Kind == agent.KindAuth && len(hello.AuthMethods) > 0 {
			err.Hint += "; its methods are " + strings.Join(each(hello.AuthMethods, named.cleanID), ", ")
		}
		return rep, err
	}
	params["sessionId"] = r.turn.Session
	switch {
	case jsonrpc.Present(hello.Capabilities.Session.Resume):
		return r.callThen(ctx, methodResume, params, r.begun)
	case hello.Capabilities.LoadSession:
		rep, err := r.callThen(ctx, methodLoad, params, r.begun)
		if err == nil {
			err = r.settle(ctx)
		}
		return rep, err
	}
	return jsonrpc.Reply{}, &agent.Error{Kind: agent.KindSession, Msg: "agent cannot continue sessions"}
}

// How long the end of a replay is looked for.
const (
	settleRounds  = 1000
	settleTimeout = 10 * time.Second
)

// settle waits for the end of the replay of a history. The protocol wants it
// before the response to session/load, but some agents begin then. So the agent
// is asked for nothing until it answered twice without a part of history in
// between. An agent that does not answer that is not waited for.
func (r *run) settle(ctx context.Context) *agent.Error {
	ctx, stop := context.WithTimeoutCause(ctx, settleTimeout, errQuiet)
	defer stop()
	seen, quiet := r.replayed(), 0
	for range settleRounds {
		_, err := r.request(ctx, methodNothing, map[string]any{}, nil)
		if err != nil {
			if context.Cause(ctx) == errQuiet { //nolint:errorlint // contexts return exactly this
				return nil
			}
			return err
		}
		now := r.replayed()
		if quiet++; now != seen {
			quiet = 0
		}
		if seen = now; quiet == 2 {
			return nil
		}
	}
	return nil
}

func (r *run) replayed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.story.replayed
}

// begun takes in that the session began, before anything else that the agent
// says is read. A fresh session's ID is the agent's answer.
func (r *run) begun(rep jsonrpc.Reply) {
	id := r.turn.Session
	if id == "" {
		var info sessionInfo
		_ = jsonrpc.Lenient(rep.Result, &info) // without an ID there is no session
		id = clean(info.SessionID)
	}
	if id == "" {
		return
	}
	r.mu.Lock()
	r.session = id
	if r.story.before == nil {
		r.story.before = new(int64) // a fresh session has cost nothing
		if r.turn.Session != "" {
			r.story.before = r.a.costs.of(id)
		}
	}
	r.mu.Unlock()
	r.emit(agent.Event{Kind: agent.EventSession, Session: id, Raw: rep.Raw})
}

// configure sets the mode, the model and the options.
func (r *run) configure(ctx context.Context, info *sessionInfo) *agent.Error {
	if err := r.setModel(ctx, info); err != nil {
		return err
	}
	r.uses(cmp.Or(r.a.cfg.Model, info.model()))
	if err := r.setMode(ctx, info); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.a.cfg.Options)) {
		o := optionOf(info, id, "")
		if o == nil {
			return notOffered("option", id, each(info.Options, func(o configOption) string { return o.ID }))
		}
		if err := r.setOption(ctx, o, r.a.cfg.Options[id]); err != nil {
			return err
		}
	}
	return nil
}

// model returns the model that a session uses; empty if the agent does not say.
func (s *sessionInfo) model() string {
	if o := optionOf(s, "model", "model"); o != nil {
		if text, ok := o.Current.(string); ok && text != "" {
			return clean(text)
		}
	}
	return clean(s.Models.Current)
}

// optionOf finds an option by its name, else by its category.
func optionOf(info *sessionInfo, id, category string) *configOption {
	i := slices.IndexFunc(info.Options, func(o configOption) bool { return o.ID == id })
	if i < 0 && category != "" {
		i = slices.IndexFunc(info.Options, func(o configOption) bool { return o.Category == category })
	}
	if i < 0 {
		return nil
	}
	return &info.Options[i]
}

// setMode sets the configured mode, or the preset's if there is such a one.
func (r *run) setMode(ctx context.Context, info *sessionInfo) *agent.Error {
	mode, wanted := r.a.cfg.Mode, true
	if mode == "" {
		mode, wanted = r.a.preset.mode(r.a.cfg.Permission), false
	}
	if mode == "" {
		return nil
	}
	offered := each(info.Modes.Available, func(m named) string { return m.ID })
	if slices.Contains(offered, mode) {
		_, err := r.call(ctx, methodSetMode, map[string]any{"sessionId": r.session, "modeId": mode})
		return err
	}
	if o := optionOf(info, "mode", "mode"); o != nil {
		if wanted || slices.Contains(o.values(), mode) {
			return r.setOption(ctx, o, mode)
		}
		offered = append(offered, o.values()...)
	}
	if wanted {
		return notOffered("mode", mode, offered)
	}
	r.note(fmt.Sprintf("the agent has no mode %q: it is unknown for which calls it asks permission", mode))
	return nil
}

// setModel sets the configured model.
func (r *run) setModel(ctx context.Context, info *sessionInfo) *agent.Error {
	model := r.a.cfg.Model
	if model == "" {
		return nil
	}
	if o := optionOf(info, "model", "model"); o != nil {
		return r.setOption(ctx, o, model)
	}
	offered := each(info.Models.Available, func(m named) string { return m.ModelID })
	if !slices.Contains(offered, model) {
		return notOffered("model", model, offered)
	}
	_, err := r.call(ctx, methodSetModel, map[string]any{"sessionId": r.session, "modelId": model})
	return err
}

// setOption sets an option to a value that it has.
func (r *run) setOption(ctx context.Context, o *configOption, value string) *agent.Error {
	params := map[string]any{"sessionId": r.session, "configId": o.ID, "value": value}
	switch offered := o.values(); {
	case o.Type == "boolean" && (value == "true" || value == "false"):
		params["type"], params["value"] = "boolean", value == "true"
	case o.Type == "boolean":
		return notOffered("value of "+o.ID, value, []string{"true", "false"})
	case !slices.Contains(offered, value):
		return notOffered("value of "+o.ID, value, offered)
	}
	_, err := r.call(ctx, methodSetOption, params)
	return err
}

// notOffered says that the agent has no such thing, and some of what it has.
func notOffered(what, value string, offered []string) *agent.Error {
	const shown = 20
	hint := "it offers none"
	if n := len(offered); n > 0 {
		hint = "it offers " + clean(strings.Join(offered[:min(n, shown)], ", "))
		if n > shown {
			hint += fmt.Sprintf(" and %d more", n-shown)
		}
	}
	return &agent.Error{Kind: agent.KindInvalid, Msg: fmt.Sprintf("agent has no %s %q", clean(what), value), Hint: hint}
}
