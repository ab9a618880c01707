package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// Body is the body of a request: the fields of the protocol, and further ones behind them.
type Body struct {
	Fields any
	Params map[string]json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (b Body) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b.Fields); err != nil {
		return nil, err
	}
	data := bytes.TrimSuffix(bytes.TrimSpace(text.Bytes()), []byte("}"))
	for _, name := range slices.Sorted(maps.Keys(b.Params)) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		data = append(append(append(append(data, ','), quoted...), ':'), b.Params[name]...)
	}
	return append(data, '}'), nil
}

// CheckParams refuses further fields that are no JSON, or that the type of a request sets itself.
func CheckParams(params map[string]json.RawMessage, request reflect.Type) error {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !json.Valid(params[name]) {
			return fmt.Errorf("the value of parameter %q is no JSON", name)
		}
		for i := range request.NumField() {
			own, _, _ := strings.Cut(request.Field(i).Tag.Get("json"), ",")
			if name == own {
				return fmt.Errorf("parameter %q is set by perdure itself", name)
			}
		}
	}
	return nil
}

// leastSecret is the length from which the value of a header is masked in errors, in bytes: a
// shorter one is part of ordinary words.
const leastSecret = 6

// Secrets returns the values of headers that are masked in errors.
func Secrets(header http.Header) []string {
	var all []string
	for _, values := range header {
		for _, value := range values {
			for _, word := range append(strings.Fields(value), value) {
				if len(word) >= leastSecret && !strings.EqualFold(word, "bearer") {
					all = append(all, word)
				}
			}
		}
	}
	return all
}
