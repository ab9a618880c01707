package rlm

import (
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// deterministic reports whether the model's answer is the same each time without a seed.
func deterministic(name string) bool {
	return strings.HasPrefix(name, "builtin:") || strings.HasPrefix(name, "mock:")
}

// takesSeed reports whether the model's provider takes a seed. A chain of models does
// not: another of them may answer the next time.
func takesSeed(name string) bool {
	return strings.HasPrefix(name, "openai:") && !strings.Contains(name, ",")
}

// checkMode refuses a run that cannot be as repeatable as its mode says.
func (c *Config) checkMode(bad func(field, format string, args ...any)) {
	if c.Mode != ModeSeeded && c.Mode != ModeStrict {
		return
	}
	named := map[string]string{"model": c.Model, "sub_model": c.SubModel, "escalate_model": c.EscalateModel}
	if !strings.HasPrefix(c.Judge, judgeRule) {
		named["judge"] = c.Judge
	}
	if c.Planner == PlannerModel { // else only the tree's own agent has tasks
		for name, p := range c.Agents {
			named["agents."+name+".model"] = p.Model
		}
	}
	if c.SubModel == c.Model {
		delete(named, "sub_model")
	}
	missing := false
	for _, field := range slices.Sorted(maps.Keys(named)) {
		name := named[field]
		if name == "" || deterministic(name) {
			continue
		}
		missing = missing || c.Seed == nil
		if c.Mode == ModeStrict && !takesSeed(name) {
			bad(field, "%q takes no seed, and mode strict needs models that do (openai:NAME) "+
				"or that answer the same each time", clip.Bytes(name, 80))
		}
	}
	if missing {
		bad("seed", "it is missing, and mode %s needs one", c.Mode)
	}
}

// loggedRequest is a request as mode logged keeps it.
type loggedRequest struct {
	System          string           `json:"system,omitempty"`
	Prompt          string           `json:"prompt"`
	Messages        []model.Message  `json:"messages,omitempty"`
	Documents       []model.Document `json:"documents,omitempty"`
	Temperature     *float64         `json:"temperature,omitempty"`
	Seed            *int64           `json:"seed,omitempty"`
	MaxOutputTokens int              `json:"max_output_tokens,omitempty"`
}

// logged is what mode logged keeps of a request; nil in other modes.
func (a *attempt) logged(req *model.Request) *loggedRequest {
	if a.run.cfg.Mode != ModeLogged {
		return nil
	}
	return &loggedRequest{System: req.System, Prompt: req.Prompt, Messages: req.Messages, Documents: req.Documents,
		Temperature: req.Temperature, Seed: req.Seed, MaxOutputTokens: req.MaxOutputTokens}
}
