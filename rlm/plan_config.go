package rlm

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/jsonreply"
	"github.com/perdure/perdure/rlm/internal/plan"
)

// maxFanIn bounds Config.FanIn.
const maxFanIn = 1000

// checkPlanning says what is wrong with how the work is broken down.
func (c *Config) checkPlanning(bad func(field, format string, args ...any)) {
	planned := c.Planner == PlannerModel
	switch {
	case planned && c.Batch:
		bad("planner", "a batch has a task for each file and no plan")
	case planned && strings.HasPrefix(c.Model, "builtin:"):
		bad("planner", "model %q quotes passages and cannot write a plan; choose another with --model", c.Model)
	case planned && strings.HasPrefix(c.SubModel, "builtin:"):
		bad("sub_model", "model %q quotes passages and cannot do the tasks of a plan", c.SubModel)
	case !planned && len(c.Variables) > 0:
		bad("variables", "only planner model reads variables")
	}
	if i := slices.IndexFunc(c.Variables, func(name string) bool { return !perdure.ValidName(name) }); i >= 0 {
		bad("variables", "%q is not a variable's name", c.Variables[i])
	}
	checkText(bad, "session", c.Session, 256)
	conditional := c.Strategy == StrategyConditional
	switch {
	case c.When != "" && planned:
		bad("when", "with planner model the plan has the conditions")
	case c.When != "" && !conditional:
		bad("when", "a condition needs strategy conditional")
	case c.When == "" && conditional && !planned:
		bad("when", "it is missing, and strategy conditional needs one, for example: none(results, .text contains \"found\")")
	case c.When != "":
		if _, err := plan.Compile(c.When, nil); err != nil {
			bad("when", "%s", err)
		}
	}
}

// checkText refuses text that cannot be stored.
func checkText(bad func(field, format string, args ...any), field, text string, limit int) {
	if len(text) > limit {
		bad(field, "it has %d bytes, the limit is %d", len(text), limit)
	}
	if strings.ContainsRune(text, 0) {
		bad(field, "it contains a NUL byte")
	}
}

// checkEndpoint refuses an address with a password: the configuration is kept
// with the tree.
func checkEndpoint(bad func(field, format string, args ...any), field, address string) {
	checkText(bad, field, address, maxModelNameBytes)
	if u, err := url.Parse(address); err == nil && u.User != nil {
		if _, secret := u.User.Password(); secret {
			bad(field, "it contains a password, which would be stored; set the key in the environment (OPENAI_API_KEY)")
		}
	}
}

// planShape is the schema of plans, compiled once.
func (e *Executor) planShape() (*jsonreply.Shape, error) {
	e.shapeOnce.Do(func() {
		if e.shape, e.shapeErr = jsonreply.Compile(plan.Schema); e.shapeErr != nil {
			e.shapeErr = fmt.Errorf("read schema of plans: %w", e.shapeErr)
		}
	})
	return e.shape, e.shapeErr
}

// decideLater leaves the shape of the tree to a plan. err is why the prompt does
// not fit its model.
func (p *planning) decideLater(root *node, direct room, err error) error {
	if err != nil {
		return err
	}
	root.Window = min(direct.window, p.cfg.windowOf(p.models[1]))
	root.Answer = min(direct.answer, p.cfg.answerOf(root.Window))
	if *p.cfg.MaxDepth == 0 { // answered directly
		if tokens := p.tokensOf(p.all()); tokens > direct.text {
			return invalid(fmt.Sprintf("max_depth: 0 means a direct answer, but the context has about %d tokens, of which "+
				"one reply can read %d",
				tokens, direct.text), "raise --max-depth, or raise --context-window")
		}
		return nil
	}
	const instruction = 1000 // tokens, the schema of plans among them
	if direct.text < instruction+2*root.Window/listShare+model.EstimateTokens(repairBytes(root.Answer)) {
		return invalid(fmt.Sprintf("the prompt (about %d tokens) leaves no room to plan in the %d tokens of model %q",
			direct.prompt, direct.window, p.models[0].name), "raise --context-window, or use another --planner")
	}
	root.Plans = true
	return nil
}

// all is the whole context.
func (p *planning) all() chunks {
	if p.reader == nil {
		return nil
	}
	return chunks{{Length: p.reader.Manifest().Bytes}}
}
