package rlm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// answerSettings are the members of a configuration that matter to the answer, besides the model.
func answerSettings() []string {
	return []string{"sub_model", "planner", "strategy", "merge", "file_merge", "agent", "samples", "judge", "when",
		"temperature", "seed", "mode", "chunk_tokens", "overlap_tokens", "overlap_percent", "context_window", "max_depth",
		"repl_engine", "repl_profile", "repl_turns", "cite", "params"}
}

// Settings returns the model of a configuration of a tree, and its other settings that matter to the
// answer as the flags of `perdure run`. Both are "" if they cannot be read.
func Settings(config json.RawMessage) (model, flags string) {
	var all map[string]json.RawMessage
	if json.Unmarshal(config, &all) != nil {
		return "", ""
	}
	_ = json.Unmarshal(all["model"], &model) // "" if there is none
	var list []string
	for _, name := range answerSettings() {
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		switch value := bytes.TrimSpace(all[name]); {
		case len(value) == 0, string(value) == "null", string(value) == "false", string(value) == "{}":
		case string(value) == "true":
			list = append(list, flag)
		case value[0] == '{':
			list = append(list, fieldFlags(value)...)
		default:
			list = append(list, flag+" "+word(value))
		}
	}
	if len(all["schema"]) > 0 {
		list = append(list, "--schema")
	}
	return model, strings.Join(list, " ")
}

// fieldFlags returns parameters as flags.
func fieldFlags(value json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list = append(list, "--param "+name+"="+word(fields[name]))
	}
	return list
}

// word returns a JSON value as a word of a command, in quotes if it has white space.
func word(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	if text == "" || strings.ContainsAny(text, " \t\n\"'$`\\") {
		return strconv.Quote(text)
	}
	return text
}
