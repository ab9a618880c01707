package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
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
	fl.StringVar(&p.schema, "schema", "", "`FILE` JSON Schema of the answer; the model corrects its answer at most twice")
}

// apply sets the flags in the configuration of a tree.
func (p *planFlags) apply(a *app, cmd *cobra.Command, l *config.Loaded, c *rlm.Config) error {
	c.When, c.FanIn, c.Agent = p.when, p.fanIn, p.agent
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
	if !cmd.Flags().Changed("sub-model") {
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
