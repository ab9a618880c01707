package openai

import "encoding/json"

// strict reports whether OpenAI can hold an answer to a schema strictly: all members of each
// object are required and no others are allowed. The keywords are not checked: a schema
// with others is refused, and sent again without.
//
// See https://platform.openai.com/docs/guides/structured-outputs.
func strict(schema json.RawMessage) bool {
	var root map[string]any
	return json.Unmarshal(schema, &root) == nil && root["type"] == "object" && closed(root)
}

// closed reports whether all objects in a schema are closed.
func closed(schema any) bool {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			if !closed(item) {
				return false
			}
		}
	case map[string]any:
		if s["type"] == "object" && !closedObject(s) {
			return false
		}
		for _, value := range s {
			if !closed(value) {
				return false
			}
		}
	}
	return true
}

func closedObject(s map[string]any) bool {
	members, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	return s["additionalProperties"] == false && len(required) == len(members)
}
