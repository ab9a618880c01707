package perdure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// thoughtsMember is the first member of the stored data of a call that has thoughts.
const thoughtsMember = `{"perdure:thoughts":`

// withThoughts returns the data of a call as it is stored: with the thoughts, if there are any.
func withThoughts(data json.RawMessage, thoughts string) (json.RawMessage, error) {
	if thoughts == "" {
		return data, nil
	}
	text, err := json.Marshal(thoughts)
	if err != nil {
		return nil, err
	}
	rest := bytes.TrimPrefix(bytes.TrimSpace(data), []byte("{"))
	out := append([]byte(thoughtsMember), text...)
	if len(rest) == 0 {
		return append(out, '}'), nil
	}
	if trimmed := bytes.TrimSpace(rest); trimmed[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...), nil
}

// splitThoughts returns the data of a call as it was given, and its thoughts.
func splitThoughts(stored string) (data json.RawMessage, thoughts string, err error) {
	rest, ok := strings.CutPrefix(stored, thoughtsMember)
	if !ok {
		if stored == "" {
			return nil, "", nil
		}
		return json.RawMessage(stored), "", nil
	}
	dec := json.NewDecoder(strings.NewReader(rest))
	if err := dec.Decode(&thoughts); err != nil {
		return nil, "", fmt.Errorf("read thoughts of call: %w", err)
	}
	rest = strings.TrimPrefix(rest[dec.InputOffset():], ",")
	if strings.TrimSpace(rest) == "}" {
		return nil, thoughts, nil
	}
	return json.RawMessage("{" + rest), thoughts, nil
}
