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
	ownModels, ownEndpoints := own.Models(), own.Endpoints()
	for _, name := range asked.Models() {
		if strings.HasPrefix(name, schemeExec+":") && !slices.Contains(ownModels, name) {
			return refuseSupervised(op, "model "+shownName(name))
		}
	}
	for _, url := range asked.Endpoints() {
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
