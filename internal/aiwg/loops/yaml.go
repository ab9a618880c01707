package loops

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/yamltext"
)

// maxYAML is the limit of a document in YAML, whose parser needs much memory.
const maxYAML = 4 << 20

// readYAML parses a YAML text that keeps the limits of [yamltext]; the error has a line.
func readYAML(text []byte) (*ast.File, *jsontree.Error) {
	file, problem := yamltext.Parse(text, maxYAML)
	if problem != nil {
		bad := &jsontree.Error{Kind: jsontree.ErrSyntax, Line: max(problem.Line, 1), Msg: "invalid YAML: " + problem.Msg}
		if problem.Limit {
			bad.Kind, bad.Column, bad.Msg = jsontree.ErrLimit, problem.Column, problem.Msg
		}
		return nil, bad
	}
	return file, nil
}

// yamlPanic returns the error for a panic of the library, which some text causes.
func yamlPanic(v any) *jsontree.Error {
	return &jsontree.Error{Line: 1, Msg: fmt.Sprintf("the YAML cannot be parsed (%v)", v)}
}

// parseYAML reads a YAML text as the JSON value with the same content. Parts of YAML
// that JSON does not have (anchors, tags, several documents) are errors.
func parseYAML(f *file) (v *jsontree.Value, problem *jsontree.Error) {
	defer func() {
		if r := recover(); r != nil {
			v, problem = nil, yamlPanic(r)
		}
	}()
	if len(f.text) > maxYAML {
		return nil, &jsontree.Error{Msg: fmt.Sprintf("it has %d bytes, the limit of YAML is %d", len(f.text), maxYAML)}
	}
	doc, bad := readYAML(f.text)
	if bad != nil {
		bad.Offset = f.offset(bad.Line, bad.Column)
		return nil, bad
	}
	if len(doc.Docs) != 1 || doc.Docs[0].Body == nil {
		return nil, &jsontree.Error{Msg: fmt.Sprintf("it has %d YAML documents, want one", len(doc.Docs))}
	}
	y := &yamlReader{file: f}
	v = y.value(doc.Docs[0].Body, 0)
	return v, y.fault
}

// offset returns the offset of a line and a column, which counts characters.
func (f *file) offset(line, column int) int {
	at := f.lines.Start(line)
	for n := 1; n < column && at < len(f.text) && f.text[at] != '\n'; n++ {
		_, size := utf8.DecodeRune(f.text[at:])
		at += size
	}
	return at
}

// yamlReader converts nodes of the library to values. It stops at the first error.
type yamlReader struct {
	file  *file
	fault *jsontree.Error
}

func (y *yamlReader) fail(n ast.Node, what string) *jsontree.Value {
	if y.fault == nil {
		y.fault = &jsontree.Error{Offset: y.offset(n.GetToken()), Msg: what}
	}
	return nil
}

// offset returns the offset of a token by its line and column, which count characters;
// the token's own offset is not always right.
func (y *yamlReader) offset(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return y.file.offset(t.Position.Line, t.Position.Column)
}

func (y *yamlReader) value(n ast.Node, depth int) *jsontree.Value {
	if n == nil || y.fault != nil {
		return &jsontree.Value{}
	}
	if depth > jsontree.DefaultDepth {
		return y.fail(n, fmt.Sprintf("values are nested deeper than %d", jsontree.DefaultDepth))
	}
	v := &jsontree.Value{}
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return y.mapping(n, depth)
	case *ast.SequenceNode:
		v.Kind = jsontree.Array
		for _, item := range n.Values {
			v.Items = append(v.Items, y.value(item, depth+1))
		}
	case *ast.StringNode:
		v = jsontree.NewString(n.Value)
	case *ast.LiteralNode:
		v = jsontree.NewString(n.Value.Value)
	case *ast.IntegerNode:
		v = jsontree.NewScalar(jsontree.Number, number(n.GetToken().Value, n.Value))
	case *ast.FloatNode:
		v = jsontree.NewScalar(jsontree.Number, number(n.GetToken().Value, n.Value))
	case *ast.BoolNode:
		v = jsontree.NewScalar(jsontree.Bool, strconv.FormatBool(n.Value))
	case *ast.NullNode:
	case *ast.TagNode, *ast.MergeKeyNode:
		return y.fail(n, "tags and merge keys of YAML are not supported")
	default:
		return y.fail(n, "the value is not supported")
	}
	v.Start = y.offset(n.GetToken())
	return v
}

func (y *yamlReader) mapping(n ast.Node, depth int) *jsontree.Value {
	v := &jsontree.Value{Kind: jsontree.Object, Start: y.offset(n.GetToken())}
	for i, pair := range pairs(n) {
		key, ok := pair.Key.(ast.ScalarNode)
		if _, merge := pair.Key.(*ast.MergeKeyNode); !ok || merge {
			return y.fail(pair.Key, "the name of a member must be a scalar")
		}
		if i == 0 && n.Type() == ast.MappingType && !n.(*ast.MappingNode).IsFlowStyle || n.Type() == ast.MappingValueType {
			v.Start = y.offset(pair.Key.GetToken())
		}
		name := key.GetToken().Value
		if text, ok := pair.Key.(*ast.StringNode); ok {
			name = text.Value
		}
		member := y.value(pair.Value, depth+1)
		if y.fault != nil {
			return nil
		}
		v.Add(name, member)
	}
	return v
}

// number returns the JSON of a number, as it is written if that is valid JSON.
func number(written string, value any) string {
	if json.Valid([]byte(written)) {
		return written
	}
	return string(jsontree.MustMarshal(value))
}
