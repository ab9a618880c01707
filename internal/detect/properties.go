package detect

import (
	"slices"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// properties reports fields and accessors that are no longer public although their type
// still exists, if tests used them and do not now, no other code had to change for it,
// and the change also does something else.
func (r *run) properties(p *pair) {
	if p.old == nil || p.new == nil || p.class != production || len(p.old.Properties) == 0 ||
		notOffered().MatchString(p.old.Path) {
		return
	}
	now, had := propertyNames(p.new.Properties), propertyNames(p.old.Properties)
	for _, o := range p.old.Properties {
		name := o.In + syntax.NameSeparator + o.Name
		if now[name] || o.In != "" && !p.new.Rest.Has(syntax.Hash(o.In)) || r.of(p).defined[o.Name] ||
			!r.testsLeft(p, o.Name) || r.usedElsewhere(p, o.Name) || givenUp(p, o.Name) || r.announced(o.Name) ||
			!r.otherWork(p) {
			continue
		}
		renamed := slices.ContainsFunc(p.new.Properties, func(n syntax.Property) bool {
			return n.In == o.In && !had[n.In+syntax.NameSeparator+n.Name] && (sharePart(n.Name, o.Name) || r.inTests(p, n.Name))
		})
		if renamed {
			continue
		}
		now[name] = true // report it once
		r.add(p.inOld(o.Line, name, name, 0.85, "public symbol no longer exported"), symbolRemoved)
	}
}

// propertyNames returns the names of properties, with the type that they belong to.
func propertyNames(all []syntax.Property) map[string]bool {
	names := make(map[string]bool, len(all))
	for _, o := range all {
		names[o.In+syntax.NameSeparator+o.Name] = true
	}
	return names
}

// givenUp reports whether other functions of a file used a name and none does now: the
// feature was removed, not just the access to it.
func givenUp(p *pair, name string) bool {
	h := syntax.Hash(name)
	uses := func(f *syntax.Function) bool {
		return f.Kind != syntax.DeclContainer && f.Leaf != name && f.All.Has(h)
	}
	return slices.ContainsFunc(p.old.Funcs, uses) && !slices.ContainsFunc(p.after().Funcs, uses)
}

// testsLeft reports whether tests used a name before and do not now.
func (r *run) testsLeft(p *pair, name string) bool {
	return r.testsUse(p, name, (*pair).before) && !r.inTests(p, name)
}

// inTests reports whether tests of the change use a name now.
func (r *run) inTests(p *pair, name string) bool { return r.testsUse(p, name, (*pair).after) }

// testsUse reports whether tests in a version of the changed files use a name.
func (r *run) testsUse(p *pair, name string, version func(*pair) *syntax.Model) bool {
	h := syntax.Hash(name)
	return slices.ContainsFunc(r.pairs, func(o *pair) bool {
		return o.class == testCode && r.of(o) == r.of(p) &&
			slices.ContainsFunc(version(o).Tests, func(t *syntax.Test) bool { return t.All.Has(h) })
	})
}

// usedElsewhere reports whether production code in other files of the change used a name.
func (r *run) usedElsewhere(p *pair, name string) bool {
	h := syntax.Hash(name)
	return slices.ContainsFunc(r.pairs, func(o *pair) bool {
		return o != p && o.class == production && r.of(o) == r.of(p) &&
			slices.ContainsFunc(o.before().Funcs, func(f *syntax.Function) bool { return f.All.Has(h) })
	})
}
