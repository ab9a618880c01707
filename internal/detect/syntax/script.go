package syntax

// readScript notes the handlers in code outside functions, as a function of its own.
func (u *unit) readScript(m *Model) {
	if u.inTests {
		return
	}
	if !oneOf(u.lang.Name, "javascript", "typescript", "python", "ruby", "php") {
		return
	}
	f := &Function{Name: Script, Leaf: Script, Line: 1, Kind: declFunction, All: m.Rest, BodyHash: firstHash}
	d := &decl{kind: declFunction, name: Script, end: len(u.tok)}
	at := 0
	u.off = 0
	read := func(to int) {
		for ; at < to; at++ {
			f.BodyHash = mixHash(f.BodyHash, u.tok[at].Hash)
			if at >= u.off {
				u.readStatement(f, at, d)
			}
		}
	}
	for i := range u.decls {
		if o := &u.decls[i]; o.kind == declFunction || o.kind == declTest {
			read(o.start)
			at = max(at, o.end)
		}
	}
	read(len(u.tok))
	if f.Guards = nil; len(f.Handlers) == 0 {
		return
	}
	f.Tokens, f.Lines = len(m.Rest), u.line(len(u.tok)-1)
	m.Funcs = append(m.Funcs, f)
}

// Script is the name of the code outside functions.
const Script = "(file)"
