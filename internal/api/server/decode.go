package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure"
)

const opRead = "read request"

// decode reads the JSON object of a request into what v points to, strictly: a
// field that v does not have, null instead of the object, text that is not
// UTF-8 and anything after the object are refused. No body counts as {}.
func (s *server) decode(w http.ResponseWriter, r *http.Request, v any) error {
	return s.decodeUpTo(w, r, v, s.limits.JSONBytes)
}

// decodeUpTo is decode with another limit on the size of the body.
func (s *server) decodeUpTo(w http.ResponseWriter, r *http.Request, v any, limit int64) error {
	if enc := r.Header.Get("Content-Encoding"); enc != "" {
		return invalid(opRead, fmt.Sprintf("content encoding %q is not understood", enc), "send the body as it is")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return bodyError(err, "JSON body")
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	if !utf8.Valid(body) {
		return invalid(opRead, "the body is not valid UTF-8", "")
	}
	if body[0] != '{' {
		return invalid(opRead, "the body is not a JSON object", `send an object, as in {"prompt": "…"}`)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return decodeError(err, v)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid(opRead, fmt.Sprintf("there is more after the JSON object, at byte %d", dec.InputOffset()), "")
	}
	return nil
}

// bodyError tells why a body could not be read: it is too large, or cut.
func bodyError(err error, what string) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &statusError{status: http.StatusRequestEntityTooLarge, err: &perdure.Error{
			Code: perdure.CodeInvalid, Op: opRead,
			Msg: fmt.Sprintf("the %s is larger than the limit of %d bytes", what, large.Limit),
		}}
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: opRead, Msg: "the " + what + " ends too early", Err: err}
}

// decodeError puts an error of the JSON decoder into words of the API.
func decodeError(err error, v any) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return invalid(opRead, fmt.Sprintf("field %q is a JSON %s, %s is needed", kind.Field, kind.Value,
			jsonKind(kind.Type)), "")
	case errors.As(err, &syntax):
		return invalid(opRead, fmt.Sprintf("the body is not valid JSON at byte %d: %v", syntax.Offset, syntax), "")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid(opRead, "the JSON of the body ends too early", "")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return invalid(opRead, "unknown field "+name, "known fields are "+strings.Join(fields(v), ", "))
	}
	var own *perdure.Error
	if errors.As(err, &own) {
		return err
	}
	return invalid(opRead, "the body is not valid: "+strings.TrimPrefix(err.Error(), "json: "), "")
}

func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "a number"
	}
}

// fields lists the JSON names of a struct's fields, those of embedded structs
// included.
func fields(v any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
