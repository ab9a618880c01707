package loops

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/yamltext"
)

// maxYAML bounds a document in YAML, whose parser needs much memory.
const maxYAML = 4 << 20

// parseYAML reads a YAML text as the value that the same in JSON would be. What
// JSON cannot say (anchors, tags, several documents) is an error.
func parseYAML(f *file) (v *jsontree.Value, problem *jsontree.Error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some texts
			v, problem = nil, &jsontree.Error{Msg: fmt.Sprintf("the YAML cannot be understood (%v)", r)}
		}
	}()
	if len(f.text) > maxYAML {
		return nil, &jsontree.Error{Msg: fmt.Sprintf("it has %d bytes, as YAML the limit is %d", len(f.text), maxYAML)}
	}
	if yamltext.TooDeep(f.text) {
		return nil, &jsontree.Error{Msg: "the YAML is nested too deeply"}
	}
	doc, err := parser.ParseBytes(f.text, 0)
	if err != nil {
		bad := yamlFault(err)
		return nil, &jsontree.Error{Offset: f.lines.Start(bad.Line), Msg: bad.Msg}
	}
	if len(doc.Docs) != 1 || doc.Docs[0].Body == nil {
		return nil, &jsontree.Error{Msg: fmt.Sprintf("it holds %d YAML documents, and has to hold one", len(doc.Docs))}
	}
	y := &yamlReader{file: f}
	v = y.value(doc.Docs[0].Body, 0)
	return v, y.fault
}

// yamlReader makes values of the library's nodes. It stops at its first fault.
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

// offset is where a token begins: its line and column count characters, and are
// right where its own offset is not.
func (y *yamlReader) offset(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	at := y.file.lines.Start(t.Position.Line)
	for n := 1; n < t.Position.Column && at < len(y.file.text) && y.file.text[at] != '\n'; n++ {
		_, size := utf8.DecodeRune(y.file.text[at:])
		at += size
	}
	return at
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
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return y.fail(n, "anchors, aliases and tags of YAML are not read")
	default:
		return y.fail(n, "is no value that such a document can hold")
	}
	v.Start = y.offset(n.GetToken())
	return v
}

func (y *yamlReader) mapping(n ast.Node, depth int) *jsontree.Value {
	v := &jsontree.Value{Kind: jsontree.Object, Start: y.offset(n.GetToken())}
	for i, pair := range pairs(n) {
		key, ok := pair.Key.(ast.ScalarNode)
		if _, merge := pair.Key.(*ast.MergeKeyNode); !ok || merge {
			return y.fail(pair.Key, "is no name of a member")
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

// number is how JSON writes a number that YAML may write otherwise.
func number(written string, is any) string {
	if json.Valid([]byte(written)) {
		return written
	}
	raw, err := json.Marshal(is)
	if err != nil {
		return "null"
	}
	return string(raw)
}
