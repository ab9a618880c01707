package loops

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	schemas "github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// schema is a JSON Schema as far as those of loops use it. TestSubset holds them
// to that.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       kinds              `json:"type"`
	Enum       []*string          `json:"enum"`
	Const      string             `json:"const"`
	Pattern    string             `json:"pattern"`
	Format     string             `json:"format"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	MinLength  int                `json:"minLength"`
	MaxLength  int                `json:"maxLength"`
	Least      int                `json:"minProperties"`
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	Others     *schema            `json:"additionalProperties"`
	Names      *schema            `json:"propertyNames"`
	Items      *schema            `json:"items"`
	Defs       map[string]*schema `json:"$defs"`

	pattern *regexp.Regexp
}

// kinds is one type or a list of them.
type kinds []string

// UnmarshalJSON reads both forms.
func (k *kinds) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]string)(k))
	}
	var one string
	err := json.Unmarshal(raw, &one)
	*k = kinds{one}
	return err
}

// allows tells whether a value may be of the kind. Without types all may.
func (s *schema) allows(kind string) bool {
	return len(s.Type) == 0 || slices.Contains(s.Type, kind) || kind == "integer" && slices.Contains(s.Type, "number")
}

// shape is a published schema.
type shape struct {
	root *schema
	defs map[string]*schema
}

// load reads a published schema.
func load(name string) (*shape, error) {
	text, err := schemas.FS.ReadFile(name + ".json")
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	root := new(schema)
	if err := json.Unmarshal(text, root); err != nil {
		return nil, fmt.Errorf("read schema %q: %w", name, err)
	}
	if err := root.compile(); err != nil {
		return nil, fmt.Errorf("read schema %q: %w", name, err)
	}
	return &shape{root: root, defs: root.Defs}, nil
}

func (s *schema) compile() (err error) {
	if s == nil {
		return nil
	}
	if s.Pattern != "" {
		if s.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return err
		}
	}
	below := []*schema{s.Others, s.Names, s.Items}
	for _, m := range []map[string]*schema{s.Properties, s.Defs} {
		for _, key := range sortedKeys(m) {
			below = append(below, m[key])
		}
	}
	for _, b := range below {
		if err := b.compile(); err != nil {
			return err
		}
	}
	return nil
}

// resolve follows a reference and returns the name of what it leads to.
func (s *shape) resolve(sub *schema) (*schema, string) {
	name := strings.TrimPrefix(sub.Ref, "#/$defs/")
	if name == "" {
		return sub, ""
	}
	return s.defs[name], name
}

// shapes are those of the files of a loop.
type shapes struct{ state, iteration, checkpoint, analytics, line, request, reply *shape }

func loadShapes() (*shapes, error) {
	var s shapes
	var err error
	for name, to := range map[string]**shape{"loop-state": &s.state, "loop-checkpoint": &s.checkpoint,
		"iteration-analytics": &s.analytics, "persistence-hooks": &s.line} {
		if *to, err = load(name); err != nil {
			return nil, err
		}
	}
	s.iteration = &shape{s.state.defs["iteration"], s.state.defs}
	hooks := s.line.defs
	s.line, s.request, s.reply = &shape{hooks["entry"], hooks}, &shape{hooks["request"], hooks}, &shape{hooks["reply"],
		hooks}
	return &s, nil
}

// forLine is what a line of a log is, by what it says.
func (s *shapes) forLine(v *jsontree.Value) *shape {
	switch v.Get("role").Text() {
	case "user":
		return s.request
	case "assistant":
		return s.reply
	}
	return s.line
}
