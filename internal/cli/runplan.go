package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/state"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/rlm"
)

// planFlags are the flags of run and batch about how the work is broken down,
// who does it, and the form of the answer.
type planFlags struct {
	when   string
	fanIn  int
	agent  string
	schema string
	vars   []string
}

func (p *planFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&p.when, "when", "", "with strategy conditional: a part is read only while this one-line `condition` "+
		"on the results before it holds, "+
		"for example 'none(results, .text contains \"found\")'")
	fl.IntVar(&p.fanIn, "fan-in", 0, "with strategy map-reduce: most `results` that one task merges; default: "+
		"--max-children")
	fl.StringVar(&p.agent, "agent", "", "`name` of a profile in the settings (agents) that says who answers and how")
	fl.StringSliceVar(&p.vars, "var", nil, "with planner model: `NAME` of a variable that the planner is told of "+
		"(repeatable)")
	fl.StringVar(&p.schema, "schema", "", "`file` with a JSON Schema that the answer has to satisfy; the model "+
		"corrects what does not, twice at most")
}

// apply puts the flags into the configuration of a tree.
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
		return env.UsageError("a JSON Schema is an object such as {\"type\": \"object\", \"properties\": {…}}",
			"--schema %q: %s", p.schema, err)
	}
	c.Schema = raw
	return nil
}

// addAgents takes the profiles of the settings over. What the chosen one says is
// stronger than other settings, and weaker than a flag.
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

// maxSchemaFile is far more than a schema may have.
const maxSchemaFile = 1 << 20

func (a *app) readSchema(name string) ([]byte, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Cwd, path)
	}
	f, err := os.Open(path)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, env.UsageError("give the name of a file with a JSON Schema", "--schema %q: %s", name, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSchemaFile))
	if err != nil {
		return nil, env.UsageError("give the name of a file with a JSON Schema", "--schema %q: %s", name, err)
	}
	return raw, nil
}
