package mock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/model"
)

const shortForms = "echo, hash, empty, invalid-utf8, cut=N, size=N, status=N, retry-after=D, delay=D, text=…, " +
	"joined by commas"

// Inline returns a script of one reply, used for every request, written as
// words joined by commas:
//
//	echo            the request itself
//	hash            "answer " and the request's hash
//	text=…          this text, with placeholders; it takes the rest of the line
//	empty           nothing
//	invalid-utf8    ends with bytes that are not UTF-8
//	cut=N           breaks off after N bytes
//	size=N          grown to N bytes
//	status=N        fails with this HTTP status
//	retry-after=D   with status
//	delay=D         waits first
//
// "delay=50ms,hash" is an example. Without a text the answer is that of hash.
// The error is a [*model.Error].
func Inline(form string) (*Script, error) {
	var spec replySpec
	for rest := form; rest != ""; {
		var word string
		if strings.HasPrefix(rest, "text=") {
			word, rest = rest, ""
		} else {
			word, rest, _ = strings.Cut(rest, ",")
		}
		if err := spec.set(word); err != nil {
			return nil, inlineError(form, err)
		}
	}
	if form == "" {
		return nil, inlineError(form, errors.New("it is empty"))
	}
	if spec.Text == nil && !spec.Empty && spec.Status == 0 {
		spec.Text = new("answer {{hash}}")
	}
	spec.Repeat = new(-1)
	s, at, err := build(form, scriptSpec{Replies: []replySpec{spec}})
	if err != nil {
		return nil, inlineError(form, fmt.Errorf("%s %w", strings.TrimPrefix(at, "replies[0]."), err))
	}
	return s, nil
}

func inlineError(form string, err error) *model.Error {
	return &model.Error{
		Kind: model.KindInvalid, Msg: fmt.Sprintf("read script %q", form), Err: err,
		Hint: "name a YAML or JSON file, or use the short forms " + shortForms,
	}
}

// set takes in one word of a short form.
func (s *replySpec) set(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	number := func(to *int) {
		if *to, err = strconv.Atoi(value); err != nil {
			err = fmt.Errorf("%s: %q is not a whole number", key, value)
		}
	}
	text := func(t string) { s.Text = &t }
	switch key {
	case "echo":
		text("{{prompt}}")
	case "hash":
		text("answer {{hash}}")
	case "text":
		text(value)
	case "empty":
		s.Empty = true
	case "invalid-utf8":
		s.InvalidUTF8 = true
	case "cut":
		s.Cut = new(int)
		number(s.Cut)
	case "size":
		number(&s.Size)
	case "status":
		number(&s.Status)
	case "retry-after":
		s.RetryAfter = value
	case "delay":
		s.Delay = value
	default:
		err = fmt.Errorf("there is no script file %q, and it is not a short form", word)
	}
	return err
}
