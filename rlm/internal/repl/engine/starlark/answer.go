package starlark

import (
	"fmt"

	"go.starlark.net/starlark"
)

// answer is the variable answer: a true value for "ready" makes its content the final answer, at once,
// or at the end of the block if there is no capture.
type answer struct {
	*starlark.Dict

	capture func(content starlark.Value) error
}

func newAnswer(capture func(starlark.Value) error) *answer {
	a := &answer{starlark.NewDict(2), capture}
	_ = a.Dict.SetKey(starlark.String("content"), starlark.String("")) // never fails: it is not frozen
	_ = a.Dict.SetKey(starlark.String("ready"), starlark.False)
	return a
}

// SetKey sets a value.
func (a *answer) SetKey(k, v starlark.Value) error {
	if err := a.Dict.SetKey(k, v); err != nil {
		return err
	}
	if k == starlark.String("ready") && bool(v.Truth()) && a.capture != nil {
		return a.capture(a.content())
	}
	return nil
}

// Attr returns the methods of a dictionary that only read it, and update.
func (a *answer) Attr(name string) (starlark.Value, error) {
	switch name {
	case "get", "items", "keys", "values":
		return a.Dict.Attr(name)
	case "update":
		return starlark.NewBuiltin(name, a.update), nil
	}
	return nil, fmt.Errorf("answer has no method %s: set its values by answer[\"content\"] = …", name)
}

// AttrNames are the names of the methods.
func (a *answer) AttrNames() []string { return []string{"get", "items", "keys", "update", "values"} }

// update sets several values, "ready" last.
func (a *answer) update(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	given := starlark.NewDict(len(kwargs))
	if len(args) == 1 {
		d, ok := args[0].(*starlark.Dict)
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want dict", b.Name(), args[0].Type())
		}
		for k, v := range d.Entries() {
			if err := given.SetKey(k, v); err != nil {
				return nil, err
			}
		}
	}
	for _, kw := range kwargs {
		if err := given.SetKey(kw[0], kw[1]); err != nil {
			return nil, err
		}
	}
	ready, _, _ := given.Delete(starlark.String("ready")) // never fails for a text
	for k, v := range given.Entries() {
		if err := a.SetKey(k, v); err != nil {
			return nil, err
		}
	}
	if ready == nil || ready == starlark.None {
		return starlark.None, nil
	}
	return starlark.None, a.SetKey(starlark.String("ready"), ready)
}

func (a *answer) content() starlark.Value {
	v, _, _ := a.Get(starlark.String("content")) // never fails for a text
	return v
}

// draft returns the text of the content, empty if there is none.
func (a *answer) draft() string {
	v := a.content()
	if v == nil || v == starlark.None {
		return ""
	}
	return textOf(v)
}
