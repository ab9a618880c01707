package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

const opRead = "read request"

// maxDepth is how deep the JSON of a request can be nested, as deep as the standard
// library reads.
const maxDepth = 10_000

// decode reads the JSON object of a request into what v points to, strictly: a
// field that v does not have or that appears twice, null instead of the object,
// text that is not UTF-8 and anything after the object are errors. No body counts
// as {}.
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
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 {
		return nil
	}
	if trimmed[0] != '{' {
		return invalid(opRead, "the body is not a JSON object", `send an object, as in {"prompt": "…"}`)
	}
	err = jsontree.Decode(body, v, jsontree.Options{File: "body", MaxDepth: maxDepth})
	if e := new(jsontree.Error); errors.As(err, &e) {
		return invalid(opRead, e.Error(), e.Hint)
	}
	var own *perdure.Error
	if err != nil && !errors.As(err, &own) {
		return invalid(opRead, "the body is not valid: "+strings.TrimPrefix(err.Error(), "json: "), "")
	}
	return err
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
