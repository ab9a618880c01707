package jsonreply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// document is a schema as it was given, checked: every keyword has the form that
// it has to have, and every reference names a schema of it. The library that
// validates relies on that, and the explanations of faults walk it.
type document struct {
	root any
	id   string
	// schemas are all schemas in it by their JSON Pointer, and anchors the
	// pointers of those with a name.
	schemas map[string]any
	anchors map[string]string
}

// form is what the value of a keyword has to be.
type form int

const (
	anything form = iota
	aSchema
	schemaOrList
	schemaList
	schemaMap
	schemaOrTextsMap
	aNumber
	aFactor
	aCount
	aText
	aPattern
	aTruth
	someTexts
	textsMap
	typeNames
	aList
)

// formOf returns the form of a keyword of the drafts 07 and 2020-12. Other keywords are not checked.
func formOf(keyword string) form {
	switch keyword {
	case "additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains",
		"additionalItems", "not", "if", "then", "else", "contentSchema":
		return aSchema
	case "items":
		return schemaOrList
	case "prefixItems", "allOf", "anyOf", "oneOf":
		return schemaList
	case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
		return schemaMap
	case "dependencies":
		return schemaOrTextsMap
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return aNumber
	case "multipleOf":
		return aFactor
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		return aCount
	case "$ref", "$dynamicRef", "$anchor", "$dynamicAnchor", "$id", "$schema", "$comment", "title", "description",
		"format",
		"contentEncoding", "contentMediaType":
		return aText
	case "pattern":
		return aPattern
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		return aTruth
	case "required":
		return someTexts
	case "dependentRequired":
		return textsMap
	case "type":
		return typeNames
	case "enum", "examples":
		return aList
	}
	return anything
}

// fault is what is wrong at a place.
func fault(place, msg string, args ...any) error {
	return fmt.Errorf("it is not a JSON Schema: %s: %s", orWhole(place), fmt.Sprintf(msg, args...))
}

// readDocument checks a schema.
func readDocument(root any) (*document, error) {
	d := &document{root: root, schemas: make(map[string]any), anchors: make(map[string]string)}
	if top, ok := root.(map[string]any); ok {
		d.id, _ = top["$id"].(string)
	}
	if err := d.add("", root); err != nil {
		return nil, err
	}
	for _, place := range slices.Sorted(maps.Keys(d.schemas)) {
		for _, ref := range refs(d.schemas[place]) {
			if _, err := d.target(ref); err != nil {
				return nil, fault(place, "%s", err)
			}
		}
	}
	return d, d.checkCycles()
}

// add checks a schema and those in it.
func (d *document) add(place string, schema any) error {
	d.schemas[place] = schema
	object, ok := schema.(map[string]any)
	if !ok {
		if _, ok := schema.(bool); !ok {
			return fault(place, "got %s, want an object or true or false", typeOf(schema))
		}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at, value := place+"/"+escape(key), object[key]
		if err := d.keyword(key, at, value); err != nil {
			return err
		}
		switch key {
		case "$anchor", "$dynamicAnchor":
			d.anchors[value.(string)] = place
		case "$id":
			if place != "" {
				return fault(at, "only the whole schema may have an $id")
			}
		}
	}
	return nil
}

func (d *document) keyword(key, at string, value any) error {
	switch formOf(key) {
	case aSchema:
		return d.add(at, value)
	case schemaOrList:
		if list, ok := value.([]any); ok {
			return d.addList(at, list)
		}
		return d.add(at, value)
	case schemaList:
		list, ok := value.([]any)
		if !ok || len(list) == 0 {
			return fault(at, "got %s, want an array with schemas in it", typeOf(value))
		}
		return d.addList(at, list)
	case schemaMap, schemaOrTextsMap, textsMap:
		return d.addMap(key, at, value)
	default:
		return plain(key, at, value)
	}
}

func (d *document) addList(at string, list []any) error {
	for i, schema := range list {
		if err := d.add(fmt.Sprintf("%s/%d", at, i), schema); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) addMap(key, at string, value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fault(at, "got %s, want object", typeOf(value))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if key == "patternProperties" {
			if _, err := regexp.Compile(name); err != nil {
				return fault(at, "%s", err)
			}
		}
		place, inner := at+"/"+escape(name), object[name]
		_, list := inner.([]any)
		var err error
		if formOf(key) == textsMap || list && key == "dependencies" {
			err = textList(place, inner)
		} else {
			err = d.add(place, inner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plain checks a keyword that has no schemas in it.
func plain(key, at string, value any) error {
	number, isNumber := value.(float64)
	text, isText := value.(string)
	_, isTruth := value.(bool)
	_, isList := value.([]any)
	want := ""
	switch formOf(key) {
	case aNumber:
		want = unless(isNumber, "number")
	case aFactor:
		want = unless(isNumber && number > 0, "a number over 0")
	case aCount:
		want = unless(isNumber && number >= 0 && number == float64(int(number)), "a whole number of at least 0")
	case aText:
		want = unless(isText, "string")
	case aPattern:
		if _, err := regexp.Compile(text); isText && err != nil {
			return fault(at, "%s", err)
		}
		want = unless(isText, "string")
	case aTruth:
		want = unless(isTruth, "boolean")
	case someTexts:
		return textList(at, value)
	case aList:
		want = unless(isList, "array")
	case typeNames:
		return typeList(at, value)
	default: // anything is right, or it is a schema
	}
	if want != "" {
		return fault(at, "got %s, want %s", typeOf(value), want)
	}
	return nil
}

func unless(fine bool, want string) string {
	if fine {
		return ""
	}
	return want
}

func textList(at string, value any) error {
	list, ok := value.([]any)
	if !ok {
		return fault(at, "got %s, want array", typeOf(value))
	}
	for i, item := range list {
		if _, ok := item.(string); !ok {
			return fault(fmt.Sprintf("%s/%d", at, i), "got %s, want string", typeOf(item))
		}
	}
	return nil
}

func typeList(at string, value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, item := range list {
		name, _ := item.(string)
		switch name {
		case "array", "boolean", "integer", "null", "number", "object", "string":
		default:
			return fault(at, "value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'")
		}
	}
	if len(list) == 0 {
		return fault(at, "no type is named")
	}
	return nil
}

// refs are the references of a schema itself.
func refs(schema any) []string {
	object, _ := schema.(map[string]any)
	var found []string
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := object[key].(string); ok {
			found = append(found, ref)
		}
	}
	return found
}

// target returns the place of the schema that a reference names.
func (d *document) target(ref string) (string, error) {
	base, fragment, _ := strings.Cut(ref, "#")
	if base != "" && base != strings.TrimSuffix(d.id, "#") {
		return "", fmt.Errorf("%q is not loaded; put it into the schema itself, under $defs", ref)
	}
	name, err := url.PathUnescape(fragment)
	if err != nil {
		return "", fmt.Errorf("%q is not a valid reference: %w", ref, err)
	}
	if place, ok := d.anchors[name]; ok && name != "" {
		return place, nil
	}
	if _, ok := d.schemas[name]; !ok {
		return "", fmt.Errorf("%q is not defined in the schema", ref)
	}
	return name, nil
}

// errCycle is a schema that needs itself for the same value.
var errCycle = errors.New("it refers to itself for one and the same value, without end")

// checkCycles refuses schemas whose validation would not end.
func (d *document) checkCycles() error {
	const open, done = 1, 2
	state := make(map[string]int)
	var visit func(place string) error
	visit = func(place string) error {
		switch state[place] {
		case open:
			return fault(place, "%s", errCycle)
		case done:
			return nil
		}
		state[place] = open
		for _, next := range d.inPlace(place) {
			if err := visit(next); err != nil {
				return err
			}
		}
		state[place] = done
		return nil
	}
	for _, place := range slices.Sorted(maps.Keys(d.schemas)) {
		if err := visit(place); err != nil {
			return err
		}
	}
	return nil
}

// inPlace are the schemas that the same value is held against.
func (d *document) inPlace(place string) []string {
	object, _ := d.schemas[place].(map[string]any)
	var next []string
	for _, ref := range refs(object) {
		if target, err := d.target(ref); err == nil {
			next = append(next, target)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas",
		"dependencies"} {
		switch v := object[key].(type) {
		case []any:
			for i := range v {
				next = append(next, fmt.Sprintf("%s/%s/%d", place, key, i))
			}
		case map[string]any:
			if formOf(key) == aSchema {
				next = append(next, place+"/"+key)
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				next = append(next, place+"/"+key+"/"+escape(name))
			}
		}
	}
	return next
}

// typeOf names the type of a JSON value as schemas do.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64, json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// escape makes a name a token of a JSON Pointer (RFC 6901).
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// orWhole is a place in words for people.
func orWhole(place string) string { return cmp.Or(place, "the value") }
