package dedupe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Decode reads an object of settings into the struct that v points to. It says
// what is wrong, and for a field that there is not, what would be right.
func Decode(raw []byte, v any) (problem, hint string) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("there is something after the configuration's end")
		}
	}
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &wrongType):
		return fmt.Sprintf("%s: a %s is not a %s", wrongType.Field, wrongType.Value, wrongType.Type), ""
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	if name, ok := strings.CutPrefix(msg, "unknown field "); ok {
		name = strings.Trim(name, `"`)
		names := fieldNames(reflect.TypeOf(v).Elem())
		hint := "the fields are " + strings.Join(names, ", ")
		if near := Nearest(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return fmt.Sprintf("there is no setting %q", name), hint
	}
	return "read configuration: " + msg, "the configuration is a JSON object"
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}
