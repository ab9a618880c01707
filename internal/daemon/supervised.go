package daemon

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// checkSupervised returns an error if a program that a loop or a run has started must not have
// this daemon execute a tree of this kind and configuration, or change a tree like that:
// programs that the daemon starts do not end with the one that asked, and another endpoint gets
// the daemon's keys. What the daemon's own settings name is allowed.
func (d *Daemon) checkSupervised(op, kind string, config json.RawMessage) error {
	if kind == perdure.KindLoop {
		return refuseSupervised(op, "loops")
	}
	if len(config) == 0 {
		return nil
	}
	var asked, own rlm.Config
	if json.Unmarshal(config, &asked) != nil {
		return nil // the executor says what is wrong with it
	}
	if len(d.cfg.Own) > 0 {
		if err := json.Unmarshal(d.cfg.Own, &own); err != nil {
			return err
		}
	}
	models, endpoints := named(&asked)
	ownModels, ownEndpoints := named(&own)
	for _, name := range models {
		if strings.HasPrefix(name, schemeExec+":") && !slices.Contains(ownModels, name) {
			return refuseSupervised(op, "model "+shownName(name))
		}
	}
	for _, url := range endpoints {
		if !slices.Contains(ownEndpoints, url) {
			return refuseSupervised(op, "requests to base URL "+model.Redact(url))
		}
	}
	return nil
}

func refuseSupervised(op, what string) error {
	return &perdure.Error{Code: perdure.CodeConflict, Op: op,
		Msg: "the daemon executes no " + what + " for a program that a loop or a run has started",
		Hint: "use what the daemon's settings name, or --socket with a path where no daemon listens: the command then " +
			"executes the tree itself"}
}

// named returns the models, the judge among them, and the endpoints that a configuration names.
func named(c *rlm.Config) (models, endpoints []string) {
	chains, urls := []string{c.Model, c.SubModel, c.Judge, c.EscalateModel}, []string{c.BaseURL}
	for _, a := range c.Agents {
		chains, urls = append(chains, a.Model), append(urls, a.BaseURL)
	}
	for _, chain := range chains {
		models = append(models, model.ChainNames(chain)...)
	}
	return models, slices.DeleteFunc(urls, func(url string) bool { return url == "" })
}
