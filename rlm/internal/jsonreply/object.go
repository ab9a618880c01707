package jsonreply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Object is a JSON object that is put together in the order of its keys.
type Object struct{ body bytes.Buffer }

// Set adds a key. Duplicate keys are not searched.
func (o *Object) Set(key string, value json.RawMessage) error {
	name, err := json.Marshal(key)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	o.separate()
	o.body.Write(name)
	o.body.WriteByte(':')
	o.body.Write(value)
	return nil
}

// Join adds all that another object has.
func (o *Object) Join(object json.RawMessage) error {
	inner, err := compactJSON(string(object))
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if len(inner) < 2 || inner[0] != '{' {
		return errors.New("encode result: the joined value is not a JSON object")
	}
	if inner = inner[1 : len(inner)-1]; len(inner) > 0 {
		o.separate()
		o.body.Write(inner)
	}
	return nil
}

func (o *Object) separate() {
	if o.body.Len() > 0 {
		o.body.WriteByte(',')
	}
}

// Encode returns the object as JSON.
func (o *Object) Encode() json.RawMessage {
	return append(append([]byte{'{'}, o.body.Bytes()...), '}')
}
