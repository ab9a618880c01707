package loops

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	schemas "github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// schema is the subset of JSON Schema that the schemas of loops use, which TestSubset
// checks.
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

// UnmarshalJSON reads a type or a list of types.
func (k *kinds) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]string)(k))
	}
	var one string
	err := json.Unmarshal(raw, &one)
	*k = kinds{one}
	return err
}

// allows reports whether the schema allows values of the kind. Without types it allows all.
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
	if err = json.Unmarshal(text, root); err == nil {
		err = root.compile()
	}
	if err != nil {
		return nil, fmt.Errorf("read schema %q: %w", name, err)
	}
	return &shape{root: root, defs: root.Defs}, nil
}

// compile compiles the patterns of the schema.
func (s *schema) compile() (err error) {
	if s == nil {
		return nil
	}
	if s.Pattern != "" {
		if s.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return err
		}
	}
	below := slices.AppendSeq([]*schema{s.Others, s.Names, s.Items}, maps.Values(s.Properties))
	for _, b := range slices.AppendSeq(below, maps.Values(s.Defs)) {
		if err := b.compile(); err != nil {
			return err
		}
	}
	return nil
}

// resolve follows a reference and returns the schema and its name.
func (s *shape) resolve(sub *schema) (*schema, string) {
	name := strings.TrimPrefix(sub.Ref, "#/$defs/")
	if name == "" {
		return sub, ""
	}
	return s.defs[name], name
}

// shapes are the schemas of the files of a loop.
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
	s.line, s.request = &shape{hooks["entry"], hooks}, &shape{hooks["request"], hooks}
	s.reply = &shape{hooks["reply"], hooks}
	return &s, nil
}

// forLine returns the schema of a line of a log.
func (s *shapes) forLine(v *jsontree.Value) *shape {
	switch v.Get("role").Text() {
	case "user":
		return s.request
	case "assistant":
		return s.reply
	}
	return s.line
}
