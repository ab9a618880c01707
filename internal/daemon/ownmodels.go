package daemon

import (
	"bytes"
	"encoding/json"
)

// ownModels are the fields of Config.Own that a request without a model gets. The endpoint
// belongs to the model.
func ownModels() []string { return []string{"model", "sub_model", "base_url"} }

// withModels returns the configuration of a requested run with the models of the daemon's own
// settings if it names none. Fields that it has stay as they are.
func (d *Daemon) withModels(requested json.RawMessage) (json.RawMessage, error) {
	if len(d.cfg.Own) == 0 {
		return requested, nil
	}
	var given, own map[string]json.RawMessage
	config := bytes.TrimSpace(requested)
	if len(config) == 0 {
		config = []byte("{}")
	}
	if json.Unmarshal(config, &given) != nil {
		return requested, nil // the executor says what is wrong with it
	}
	if _, named := given["model"]; named || config[0] != '{' {
		return requested, nil
	}
	if err := json.Unmarshal(d.cfg.Own, &own); err != nil {
		return nil, err
	}
	// At the end, so that errors name the positions of the request.
	out := bytes.TrimSuffix(bytes.Clone(config), []byte("}"))
	for _, name := range ownModels() {
		value, configured := own[name]
		if _, named := given[name]; named || !configured {
			continue
		}
		if len(given) > 0 || len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, `"`+name+`":`...), value...)
	}
	return append(out, '}'), nil
}
