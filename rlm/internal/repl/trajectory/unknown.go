package trajectory

import (
	"encoding/json"
	"maps"
	"slices"
)

// members returns the names of the members of an object that are known at a place.
func members(place string) []string {
	switch place {
	case typeMetadata:
		return []string{"type", "timestamp", "root_model", "max_depth", "max_iterations", "backend", "backend_kwargs",
			"environment_type", "environment_kwargs", "other_backends"}
	case typeIteration:
		return []string{"type", "iteration", "timestamp", "prompt", "response", "code_blocks", "final_answer",
			"iteration_time"}
	case "prompt":
		return []string{"role", "content"}
	case "code_blocks":
		return []string{"code", "result"}
	case "result":
		return []string{"stdout", "stderr", "locals", "execution_time", "rlm_calls", "final_answer"}
	}
	return []string{"root_model", "prompt", "response", "usage_summary", "prompt_tokens", "completion_tokens",
		"execution_time", "error"}
}

// Unknown returns the paths of the members of a line that this package does not read, sorted.
func Unknown(line []byte) []string {
	found := make(map[string]bool)
	unknown(line, typeIteration, "", found)
	return slices.Sorted(maps.Keys(found))
}

// unknown adds the unknown members of an object, or of a list of objects, at a place.
func unknown(raw json.RawMessage, place, path string, found map[string]bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, one := range list {
			unknown(one, place, path, found)
		}
		return
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return
	}
	if place == typeIteration && string(object["type"]) == `"`+typeMetadata+`"` {
		place = typeMetadata
	}
	const most = 100 // names of a line
	for name, value := range object {
		switch {
		case !slices.Contains(members(place), name):
			if len(found) < most {
				found[path+name] = true
			}
		case place == typeIteration && (name == "prompt" || name == "code_blocks"),
			place == "code_blocks" && name == "result",
			place == "result" && name == "rlm_calls":
			unknown(value, name, path+name+".", found)
		}
	}
}
