package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/state"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/rlm"
)

// planFlags holds the flags of run and batch on the plan, the profile and the schema of
// the answer.
type planFlags struct {
	when   string
	fanIn  int
	agent  string
	schema string
	cite   bool
	vars   []string
}

func (p *planFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&p.when, "when", "", "`CONDITION` condition on the previous results under which strategy conditional "+
		"runs a part, such as 'none(results, .text contains \"found\")'")
	fl.IntVar(&p.fanIn, "fan-in", 0,
		"`N` maximum results that a task merges in strategy map-reduce; default: --max-children")
	fl.StringVar(&p.agent, "agent", "", "`NAME` profile from the settings (agents): model, endpoint and system prompt")
	fl.StringSliceVar(&p.vars, "var", nil, "`NAME` variable that planner model receives; repeatable")
	fl.BoolVar(&p.cite, "cite", false, "ask the model for quotes; quotes that are not in the text are removed")
	fl.StringVar(&p.schema, "schema", "", "`FILE` JSON Schema of the answer; the model corrects its answer at most twice")
}

// apply sets the flags in the configuration of a tree.
func (p *planFlags) apply(a *app, cmd *cobra.Command, l *config.Loaded, c *rlm.Config) error {
	c.When, c.FanIn, c.Agent, c.Cite = p.when, p.fanIn, p.agent, p.cite
	if c.Variables = p.vars; len(p.vars) > 0 {
		c.Session = state.Session(a.Getenv)
	}
	if p.agent != "" || c.Planner == rlm.PlannerModel {
		a.addAgents(cmd, l, c)
	}
	if !cmd.Flags().Changed("schema") {
		return nil
	}
	raw, err := a.readSchema(p.schema)
	if err != nil {
		return err
	}
	if err := rlm.CheckSchema(raw); err != nil {
		return env.UsageError("write a JSON Schema such as {\"type\": \"object\", \"properties\": {…}}",
			"--schema %q: %s", p.schema, err)
	}
	c.Schema = raw
	return nil
}

// addAgents adds the profiles of the settings. The chosen one overrides other settings,
// and flags override it.
func (a *app) addAgents(cmd *cobra.Command, l *config.Loaded, c *rlm.Config) {
	for name, from := range l.Agents {
		if c.Agents == nil {
			c.Agents = make(map[string]rlm.Agent)
		}
		to := rlm.Agent{Model: a.anchor(from.Model), BaseURL: from.BaseURL, System: from.System,
			Temperature: from.Temperature, MaxOutputTokens: from.MaxOutputTokens}
		to.Params, _ = rlm.MakeFields(objectOf(from.Params)) // the settings have checked them
		to.Headers, _ = rlm.MakeFields(objectOf(from.Headers))
		if strings.HasPrefix(to.Model, "openai:") && to.BaseURL == "" {
			to.BaseURL = cmp.Or(l.BaseURL, a.Getenv("OPENAI_BASE_URL"))
		}
		c.Agents[name] = to
	}
	chosen := c.Agents[c.Agent]
	if chosen.Model == "" || cmd.Flags().Changed("model") {
		return
	}
	c.Model = ""
	if !env.Changed(cmd, "sub-model") {
		c.SubModel = ""
	}
	if chosen.BaseURL != "" && !cmd.Flags().Changed("base-url") {
		c.BaseURL = ""
	}
}

// maxSchemaFile bounds the bytes that are read of a schema; the limit is lower.
const maxSchemaFile = 1 << 20

func (a *app) readSchema(name string) ([]byte, error) {
	f, err := os.Open(a.Path(name))
	var raw []byte
	if err == nil {
		defer f.Close()
		raw, err = io.ReadAll(io.LimitReader(f, maxSchemaFile))
	}
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, env.UsageError("write the name of a file with a JSON Schema", "--schema %q: %s", name, err)
	}
	return raw, nil
}

// qualityFlags holds the flags of run and batch on samples, scores and the quality
// gate.
type qualityFlags struct {
	samples      int
	criteria     string
	minScore     float64
	gateRounds   int
	gateFallback string
	gateAt       string
	escalate     string
}

func (q *qualityFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.IntVar(&q.samples, "samples", 0, "`N` answers to the same prompt, if the context is not split; default: 1, or 3 "+
		"for vote and best-of-n")
	fl.StringVar(&q.criteria, "criteria", "",
		"`TEXT` criteria of a judge model; default: correct, then complete, then clear")
	fl.Float64Var(&q.minScore, "min-score", 0, "`POINTS` minimum score of an answer, or it is rewritten; judge models "+
		"score 0 to 100")
	fl.IntVar(&q.gateRounds, "gate-rounds", 0, "`N` maximum versions of an answer; default: 3")
	fl.StringVar(&q.gateFallback, "gate-fallback", "", "`ACTION` what to do if no version passes: return_best (the "+
		"default), fail, or escalate (ask --escalate-model once)")
	fl.StringVar(&q.gateAt, "gate-at", "", "`TASKS` tasks whose answers are judged: all (the default) or root")
	fl.StringVar(&q.escalate, "escalate-model", "",
		"`MODEL` model of --gate-fallback escalate; default: the model, for answers of the sub-model")
}

// apply sets the flags in the configuration of a tree. A judge from the settings is used
// only if answers are scored.
func (q *qualityFlags) apply(a *app, cmd *cobra.Command, l *config.Loaded, c *rlm.Config) error {
	c.Samples, c.Criteria = q.samples, q.criteria
	c.GateRounds, c.GateFallback, c.GateAt = q.gateRounds, q.gateFallback, q.gateAt
	c.EscalateModel = a.anchor(q.escalate)
	if math.IsNaN(q.minScore) || math.IsInf(q.minScore, 0) { // not valid in JSON
		return env.UsageError("write a number from 0 to 100", "--min-score: %v is not a number", q.minScore)
	}
	if cmd.Flags().Changed("min-score") {
		c.MinScore = &q.minScore
	}
	if c.Merge == rlm.MergeBest || c.MinScore != nil || cmd.Flags().Changed("judge") {
		c.Judge = a.anchor(l.Judge)
	}
	return nil
}
