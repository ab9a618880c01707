package mock

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/text/yamltext"
	"github.com/perdure/perdure/model"
)

// Limits of a script.
const (
	maxScript = 16 << 20
	maxSize   = 1 << 30
)

// The form of a script file; the package comment explains the fields.
type (
	scriptSpec struct {
		Model   string      `yaml:"model"`
		Window  int         `yaml:"window"`
		Limit   int         `yaml:"limit"`
		Replies []replySpec `yaml:"replies"`
	}
	replySpec struct {
		Match       string     `yaml:"match"`
		Text        *string    `yaml:"text"`
		Repeat      *int       `yaml:"repeat"`
		Delay       string     `yaml:"delay"`
		Status      int        `yaml:"status"`
		RetryAfter  string     `yaml:"retry_after"`
		Message     string     `yaml:"message"`
		Cut         *int       `yaml:"cut"`
		Empty       bool       `yaml:"empty"`
		InvalidUTF8 bool       `yaml:"invalid_utf8"`
		Size        int        `yaml:"size"`
		StopReason  string     `yaml:"stop_reason"`
		Usage       *usageSpec `yaml:"usage"`
	}
	usageSpec struct {
		Input   int64 `yaml:"input"`
		Output  int64 `yaml:"output"`
		Cached  int64 `yaml:"cached"`
		Written int64 `yaml:"written"`
		Omit    bool  `yaml:"omit"`
	}
)

// Open returns the script that the part after "mock:" of a model's name stands
// for: a file when it ends in .yaml, .yml or .json, holds a slash or names a
// file; else one of the short forms of [Inline]. The error is a
// [*model.Error].
func Open(script string) (*Script, error) {
	if !isFile(script) {
		return Inline(script)
	}
	info, err := os.Stat(script)
	if err == nil && info.Size() > maxScript {
		err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxScript)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(script)
	}
	if err != nil {
		return nil, &model.Error{
			Kind: model.KindNotFound, Msg: fmt.Sprintf("read script %q", script), Err: err,
			Hint: "name a YAML or JSON file, or one of the short forms " + shortForms,
		}
	}
	return Parse(script, data)
}

func isFile(script string) bool {
	if slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(script))) {
		return !strings.Contains(script, "=")
	}
	if !strings.Contains(script, "=") && strings.ContainsAny(script, `/\`) {
		return true
	}
	info, err := os.Stat(script)
	return err == nil && info.Mode().IsRegular()
}

// Parse reads a script in YAML or JSON. Unknown fields are errors; each error
// names the script and, where it can, the line. The name is for errors. The
// error is a [*model.Error].
func Parse(name string, data []byte) (*Script, error) {
	text := string(data)
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		// JSON has no tabs but between its parts, where YAML forbids them.
		text = strings.ReplaceAll(text, "\t", " ")
	}
	var spec scriptSpec
	file, problem := yamltext.Parse([]byte(text), maxScript)
	if problem == nil {
		problem = yamltext.Decode([]byte(text), maxScript, &spec)
	}
	if problem != nil {
		return nil, parseError(name, problem.Line, problem.Message())
	}
	s, at, err := build(name, spec)
	if err != nil {
		return nil, parseError(name, lineOf(file, at), at+": "+err.Error())
	}
	return s, nil
}

func parseError(name string, line int, what string) *model.Error {
	msg := fmt.Sprintf("script %q: %s", name, what)
	if line > 0 {
		msg = fmt.Sprintf("script %q line %d: %s", name, line, what)
	}
	return &model.Error{
		Kind: model.KindInvalid, Msg: msg,
		Hint: "a script has the fields model, window, limit and replies; each of these has " +
			"match, text, repeat, delay, status, retry_after, message, cut, empty, invalid_utf8, size, stop_reason, usage",
	}
}

// lineOf finds the line of a field such as "replies[2].match", or of the reply
// that should have it; 0 when it cannot.
func lineOf(file *ast.File, at string) int {
	for at != "" {
		if path, err := yaml.PathString("$." + at); err == nil {
			if node, err := path.FilterFile(file); err == nil && node != nil && node.GetToken() != nil {
				return node.GetToken().Position.Line
			}
		}
		at = at[:max(0, strings.LastIndexByte(at, '.'))]
	}
	return 0
}

// build checks a script. at names the field that is wrong.
func build(name string, spec scriptSpec) (s *Script, at string, err error) {
	if spec.Window < 0 {
		return nil, "window", errors.New("is below 0")
	}
	if spec.Limit < 0 {
		return nil, "limit", errors.New("is below 0")
	}
	if len(spec.Replies) == 0 {
		return nil, "replies", errors.New("there are none")
	}
	s = &Script{name: name, model: spec.Model, window: spec.Window, limit: spec.Limit}
	s.model = cmp.Or(s.model, "mock")
	for i, r := range spec.Replies {
		built, field, err := buildRule(r)
		if err != nil {
			return nil, fmt.Sprintf("replies[%d].%s", i, field), err
		}
		s.replies = append(s.replies, built)
	}
	return s, "", nil
}

func buildRule(spec replySpec) (r *rule, field string, err error) {
	r = &rule{spec: spec, left: 1}
	if field, err := spec.check(); err != nil {
		return nil, field, err
	}
	if r.delay, err = duration(spec.Delay); err != nil {
		return nil, "delay", err
	}
	if r.retryAfter, err = duration(spec.RetryAfter); err != nil {
		return nil, "retry_after", err
	}
	if spec.Match != "" {
		r.left = -1
		if r.match, err = regexp.Compile(spec.Match); err != nil {
			return nil, "match", err
		}
	}
	if spec.Repeat != nil {
		r.left = *spec.Repeat
	}
	r.spec.StopReason = cmp.Or(r.spec.StopReason, "stop")
	r.spec.Message = cmp.Or(r.spec.Message, "scripted status "+strconv.Itoa(spec.Status))
	if spec.Text != nil {
		if r.text, err = pieces(*spec.Text, r.match); err != nil {
			return nil, "text", err
		}
	}
	return r, "", nil
}

// check looks at the fields that need nothing but themselves.
func (s replySpec) check() (field string, err error) {
	below := errors.New("is below 0")
	switch {
	case s.Repeat != nil && *s.Repeat < -1:
		return "repeat", errors.New("is below -1")
	case s.Repeat != nil && *s.Repeat == 0:
		return "repeat", errors.New("is 0: the reply would never be used")
	case s.Status != 0 && (s.Status < 400 || s.Status > 599):
		return "status", errors.New("is not between 400 and 599")
	case s.Status == 0 && s.RetryAfter != "":
		return "retry_after", errors.New("has no meaning without status")
	case s.Status == 0 && s.Message != "":
		return "message", errors.New("has no meaning without status")
	case s.Cut != nil && *s.Cut < 0:
		return "cut", below
	case s.Size < 0 || s.Size > maxSize:
		return "size", fmt.Errorf("is not between 0 and %d", maxSize)
	case s.Usage != nil && (s.Usage.Input < 0 || s.Usage.Output < 0 || s.Usage.Cached < 0 || s.Usage.Written < 0):
		return "usage", below
	case s.Empty && (s.Text != nil || s.Size > 0 || s.InvalidUTF8):
		return "empty", errors.New("is true, but there is an answer too")
	case !s.Empty && s.Text == nil && s.Status == 0 && s.Size == 0 && !s.InvalidUTF8 && s.Cut == nil:
		return "text", errors.New("is missing")
	}
	return "", nil
}

// duration reads a duration as time.ParseDuration does; empty is 0.
func duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 50ms or 2s", text)
	}
	return d, nil
}

var rePlaceholder = lazyregexp.New(`\{\{ *([a-z_]+|[0-9]+) *\}\}`)

// parts splits a text at its placeholders.
func pieces(text string, match *regexp.Regexp) ([]piece, error) {
	var list []piece
	end := 0
	for _, at := range rePlaceholder().FindAllStringSubmatchIndex(text, -1) {
		if at[0] > end {
			list = append(list, piece{literal: text[end:at[0]]})
		}
		end = at[1]
		name := text[at[2]:at[3]]
		p, err := placeholder(name, match)
		if err != nil {
			return nil, err
		}
		list = append(list, piece{placeholder: p})
	}
	if end < len(text) {
		list = append(list, piece{literal: text[end:]})
	}
	return list, nil
}

func placeholder(name string, match *regexp.Regexp) (string, error) {
	switch name {
	case "prompt", "hash", "short", "bytes", "n":
		return name, nil
	case "match":
		name = "0"
	}
	group, err := strconv.Atoi(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("{{%s}} is unknown; there are prompt, hash, short, bytes, n, match, 1 to 9", name)
	case match == nil:
		return "", fmt.Errorf("{{%s}} needs a pattern", name)
	case group > min(match.NumSubexp(), 9):
		return "", fmt.Errorf("{{%s}}: the pattern has %d groups", name, match.NumSubexp())
	}
	return strconv.Itoa(group), nil
}
