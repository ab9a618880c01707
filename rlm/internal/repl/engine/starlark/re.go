package starlark

import (
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// Flags of the module re, with the values that they have in Python.
const (
	flagIgnoreCase = 2
	flagMultiline  = 8
	flagDotAll     = 16
)

// reModule is like Python's module re, with the regular expressions of Go, see package regexp:
// without references back and looking around.
func reModule() starlark.Value {
	m := &starlarkstruct.Module{Name: "re", Members: starlark.StringDict{
		"IGNORECASE": starlark.MakeInt(flagIgnoreCase), "I": starlark.MakeInt(flagIgnoreCase),
		"MULTILINE": starlark.MakeInt(flagMultiline), "M": starlark.MakeInt(flagMultiline),
		"DOTALL": starlark.MakeInt(flagDotAll), "S": starlark.MakeInt(flagDotAll),
		"escape": starlark.NewBuiltin("escape", escape), "compile": starlark.NewBuiltin("compile", compileRe),
	}}
	for _, name := range methods() {
		m.Members[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple,
			kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) == 0 {
				return nil, fmt.Errorf("re.%s: the pattern is missing", b.Name())
			}
			flags, rest, err := takeFlags(kwargs)
			if err != nil {
				return nil, err
			}
			p, err := patternOf(args[0], flags)
			if err != nil {
				return nil, err
			}
			return p.call(t, b.Name(), args[1:], rest)
		})
	}
	return m
}

// methods are the functions of a pattern.
func methods() []string {
	return []string{"findall", "finditer", "fullmatch", "match", "search", "split", "sub"}
}

// takeFlags takes the argument flags away.
func takeFlags(kwargs []starlark.Tuple) (flags int, rest []starlark.Tuple, err error) {
	for _, kw := range kwargs {
		if kw[0] != starlark.String("flags") {
			rest = append(rest, kw)
		} else if flags, err = starlark.AsInt32(kw[1]); err != nil {
			return 0, nil, fmt.Errorf("re: flags: %w", err)
		}
	}
	return flags, rest, nil
}

func escape(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var text string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &text); err != nil {
		return nil, err
	}
	return starlark.String(regexp.QuoteMeta(text)), nil
}

func compileRe(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var text string
	flags := 0
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &text, "flags?", &flags); err != nil {
		return nil, err
	}
	return patternOf(starlark.String(text), flags)
}

// pattern is a compiled regular expression. The others are the same at the beginning of a text,
// and as the whole of one.
type pattern struct {
	source                 string
	anywhere, start, whole *regexp.Regexp
}

// patternOf compiles a text, unless it is a pattern already.
func patternOf(v starlark.Value, flags int) (*pattern, error) {
	if p, ok := v.(*pattern); ok {
		return p, nil
	}
	text, ok := starlark.AsString(v)
	if !ok {
		return nil, fmt.Errorf("re: the pattern is a %s", v.Type())
	}
	set := "" // always in this order: an error shows it
	for _, f := range []struct {
		flag   int
		letter string
	}{{flagIgnoreCase, "i"}, {flagMultiline, "m"}, {flagDotAll, "s"}} {
		if flags&f.flag != 0 {
			set += f.letter
		}
	}
	source := text
	if set != "" {
		source = "(?" + set + ":" + text + ")"
	}
	p := &pattern{source: text}
	for _, c := range []struct {
		to   **regexp.Regexp
		text string
	}{{&p.anywhere, source}, {&p.start, `\A(?:` + source + `)`}, {&p.whole, `\A(?:` + source + `)\z`}} {
		var err error
		if *c.to, err = regexp.Compile(c.text); err != nil {
			return nil, fmt.Errorf("re: %w (there are no references back and no looking around)", err)
		}
	}
	return p, nil
}

// String, Type, Freeze, Truth and Hash make it a value.
func (p *pattern) String() string        { return fmt.Sprintf("re.compile(%q)", p.source) }
func (p *pattern) Type() string          { return "pattern" }
func (p *pattern) Freeze()               {}
func (p *pattern) Truth() starlark.Bool  { return true }
func (p *pattern) Hash() (uint32, error) { return starlark.String(p.source).Hash() }

// AttrNames are the names of the functions.
func (p *pattern) AttrNames() []string { return append(methods(), "pattern") }

// Attr returns a function.
func (p *pattern) Attr(name string) (starlark.Value, error) {
	if name == "pattern" {
		return starlark.String(p.source), nil
	}
	for _, known := range methods() {
		if known == name {
			return starlark.NewBuiltin(name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple,
				kwargs []starlark.Tuple) (starlark.Value, error) {
				return p.call(t, b.Name(), args, kwargs)
			}), nil
		}
	}
	return nil, nil //nolint:nilnil // there is none, as Starlark wants it
}

// call calls a function of the pattern.
func (p *pattern) call(t *starlark.Thread, name string, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var text string
	count := 0
	if name == "sub" {
		var by starlark.Value
		if err := starlark.UnpackArgs(name, args, kwargs, "repl", &by, "string", &text, "count?", &count); err != nil {
			return nil, err
		}
		return p.sub(t, by, text, count)
	}
	extra := []any{"string", &text}
	if name == "split" {
		extra = append(extra, "maxsplit?", &count)
	}
	if err := starlark.UnpackArgs(name, args, kwargs, extra...); err != nil {
		return nil, err
	}
	switch name {
	case "match":
		return found(p.start, text), nil
	case "fullmatch":
		return found(p.whole, text), nil
	case "search":
		return found(p.anywhere, text), nil
	case "split":
		return p.split(text, count), nil
	}
	var out []starlark.Value
	for _, at := range p.anywhere.FindAllStringSubmatchIndex(text, -1) {
		m := &match{p.anywhere, text, at}
		if name == "finditer" {
			out = append(out, m)
		} else {
			out = append(out, m.listed())
		}
	}
	return starlark.NewList(out), nil
}

// found returns the first match, or None.
func found(r *regexp.Regexp, text string) starlark.Value {
	if at := r.FindStringSubmatchIndex(text); at != nil {
		return &match{r, text, at}
	}
	return starlark.None
}

// split splits a text at the matches, whose groups are in the result too.
func (p *pattern) split(text string, most int) starlark.Value {
	var out []starlark.Value
	from := 0
	for n, at := range p.anywhere.FindAllStringSubmatchIndex(text, -1) {
		if most > 0 && n == most {
			break
		}
		m := &match{p.anywhere, text, at}
		out = append(out, starlark.String(text[from:at[0]]))
		for g := 1; g < len(at)/2; g++ {
			out = append(out, m.group(g))
		}
		from = at[1]
	}
	return starlark.NewList(append(out, starlark.String(text[from:])))
}

// sub replaces the first matches, all if most is 0.
func (p *pattern) sub(t *starlark.Thread, by starlark.Value, text string, most int) (starlark.Value, error) {
	template, isText := starlark.AsString(by)
	function, isFunction := by.(starlark.Callable)
	if !isText && !isFunction {
		return nil, fmt.Errorf("sub: the replacement is a %s", by.Type())
	}
	reference := regexp.MustCompile(`\\(\d+)|\\g<(\w+)>`) // to a group, as Python writes it
	template = reference.ReplaceAllString(strings.ReplaceAll(template, "$", "$$"), "$${$1$2}")
	var out []byte
	from := 0
	for n, at := range p.anywhere.FindAllStringSubmatchIndex(text, -1) {
		if most > 0 && n == most {
			break
		}
		out = append(out, text[from:at[0]]...)
		from = at[1]
		if isText {
			out = p.anywhere.ExpandString(out, template, text, at)
			continue
		}
		v, err := starlark.Call(t, function, starlark.Tuple{&match{p.anywhere, text, at}}, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, textOf(v)...)
	}
	return starlark.String(append(out, text[from:]...)), nil
}

// match is a match of a pattern.
type match struct {
	r    *regexp.Regexp
	text string
	at   []int // begin and end of the whole and of each group; -1 if a group has none
}

// String, Type, Freeze, Truth and Hash make it a value.
func (m *match) String() string {
	return fmt.Sprintf("<match of (%d, %d): %q>", m.at[0], m.at[1], m.text[m.at[0]:m.at[1]])
}
func (m *match) Type() string          { return "match" }
func (m *match) Freeze()               {}
func (m *match) Truth() starlark.Bool  { return true }
func (m *match) Hash() (uint32, error) { return starlark.String(m.text[m.at[0]:m.at[1]]).Hash() }

// group returns a group, None if it has no part in the match.
func (m *match) group(n int) starlark.Value {
	if m.at[2*n] < 0 {
		return starlark.None
	}
	return starlark.String(m.text[m.at[2*n]:m.at[2*n+1]])
}

// groups returns all groups but the whole.
func (m *match) groups() starlark.Tuple {
	out := make(starlark.Tuple, 0, len(m.at)/2)
	for g := 1; g < len(m.at)/2; g++ {
		out = append(out, m.group(g))
	}
	return out
}

// listed is the match as findall has it.
func (m *match) listed() starlark.Value {
	groups := m.groups()
	for i, g := range groups {
		if g == starlark.None {
			groups[i] = starlark.String("")
		}
	}
	switch len(groups) {
	case 0:
		return m.group(0)
	case 1:
		return groups[0]
	}
	return groups
}

// AttrNames are the names of the methods.
func (m *match) AttrNames() []string {
	return []string{"end", "group", "groupdict", "groups", "span", "start"}
}

// Attr returns a method.
func (m *match) Attr(name string) (starlark.Value, error) {
	switch name {
	case "group", "start", "end", "span", "groups", "groupdict":
		return starlark.NewBuiltin(name, m.method), nil
	}
	return nil, nil //nolint:nilnil // there is none, as Starlark wants it
}

func (m *match) method(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	switch b.Name() {
	case "groups":
		return m.groups(), starlark.UnpackArgs(b.Name(), args, kwargs)
	case "groupdict":
		return m.named(), starlark.UnpackArgs(b.Name(), args, kwargs)
	}
	var which starlark.Value = starlark.MakeInt(0)
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 0, &which); err != nil {
		return nil, err
	}
	n, err := starlark.AsInt32(which)
	if name, ok := starlark.AsString(which); ok {
		n, err = m.r.SubexpIndex(name), nil
	}
	if err != nil || n < 0 || n >= len(m.at)/2 {
		return nil, fmt.Errorf("%s: there is no group %s", b.Name(), which)
	}
	switch b.Name() {
	case "start":
		return starlark.MakeInt(m.at[2*n]), nil
	case "end":
		return starlark.MakeInt(m.at[2*n+1]), nil
	case "span":
		return starlark.Tuple{starlark.MakeInt(m.at[2*n]), starlark.MakeInt(m.at[2*n+1])}, nil
	}
	return m.group(n), nil
}

// named are the groups that have names.
func (m *match) named() starlark.Value {
	out := starlark.NewDict(len(m.at) / 2)
	for n, name := range m.r.SubexpNames() {
		if name != "" {
			_ = out.SetKey(starlark.String(name), m.group(n)) // never fails: it is not frozen
		}
	}
	return out
}
