package rlm

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Fields is a JSON object of names and values, for example {"top_p": 0.9}. It is text so that it can
// be compared; the empty text is an object without fields.
type Fields string

// maxFieldsBytes bounds the fields of a configuration.
const maxFieldsBytes = 64 << 10

// MakeFields returns an object; its values have to be JSON.
func MakeFields(values map[string]json.RawMessage) (Fields, error) {
	if len(values) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(values)
	return Fields(raw), err
}

// Values returns the values by name.
func (f Fields) Values() map[string]json.RawMessage {
	values := make(map[string]json.RawMessage)
	_ = json.Unmarshal([]byte(f), &values) // it is an object, or empty
	return values
}

// Strings returns the values that are text, by name.
func (f Fields) Strings() map[string]string {
	texts := make(map[string]string)
	for name, value := range f.Values() {
		var text string
		if json.Unmarshal(value, &text) == nil {
			texts[name] = text
		}
	}
	return texts
}

// MarshalJSON implements [json.Marshaler].
func (f Fields) MarshalJSON() ([]byte, error) {
	if f == "" {
		return []byte("{}"), nil
	}
	return []byte(f), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads an object.
func (f *Fields) UnmarshalJSON(data []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return errors.New("it is not an object")
	}
	made, err := MakeFields(values)
	*f = made
	return err
}

// Over returns the fields of both; those of f are used where both have one.
func (f Fields) Over(other Fields) Fields {
	values := other.Values()
	maps.Copy(values, f.Values())
	made, _ := MakeFields(values) // they were JSON before
	return made
}

// checkFields reports what is wrong with the further parameters and headers of requests.
func checkFields(bad func(field, format string, args ...any), prefix string, params, headers Fields) {
	for field, f := range map[string]Fields{"params": params, "headers": headers} {
		if len(f) > maxFieldsBytes {
			bad(prefix+field, "it has %d bytes, at most %d are possible", len(f), maxFieldsBytes)
		}
		if _, empty := f.Values()[""]; empty {
			bad(prefix+field, "a name is empty")
		}
	}
	texts := headers.Strings()
	for _, name := range slices.Sorted(maps.Keys(headers.Values())) {
		switch source, isText := texts[name]; {
		case strings.Trim(name, nameLetters) != "":
			bad(prefix+"headers", "%q is not the name of a header", name)
		case !isText || !strings.Contains(source, "$"):
			bad(prefix+"headers", "the value of %q is not from an environment variable, as in \"$TOKEN\": values are not stored",
				name)
		}
	}
}
