package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// readAskers notes the calls of a function that may check something, and the words on their lines.
func (u *unit) readAskers(f *Function, d *decl) {
	if f.Test {
		return
	}
	var given multiset.Hashes
	for i := d.body; i < d.end; i++ {
		if !u.isWord(i) || !u.calledSomehow(i) || harmless(u.at(i)) || presences()[u.at(i)] || u.at(i) == "nameof" ||
			strings.HasSuffix(u.at(i), "Exception") || strings.HasSuffix(u.at(i), "Error") || u.corrects(i, d.body) {
			continue
		}
		f.Askers = append(f.Askers, u.tok[i].Hash)
		if Vouches(u.at(i)) && u.at(i-2) != "JSON" {
			f.Vouchers = append(f.Vouchers, u.tok[i].Hash)
		}
		from, to := u.linesAround(i, d)
		for _, w := range u.once(appendBag, u.tok[from:to]) {
			given = append(given, CallWord(u.tok[i].Hash, w))
		}
	}
	u.scratch = append(u.scratch[:0], given...)
	f.Askers, f.Vouchers, f.Given = multiset.Set(f.Askers), multiset.Set(f.Vouchers), u.sortedOnce()
}

// Vouches reports whether the name of a call says that it checks a value, not only its presence.
func Vouches(name string) bool {
	if presences()[name] {
		return false
	}
	low := strings.ToLower(name[:min(len(name), 64)])
	return low == "parse" || low == "safeparse" || low == "safe_parse" || strings.HasPrefix(low, "must") ||
		containsAny(low, "valid", "verif", "ensure", "assert", "check", "schema", "require", "guard")
}

// CallWord returns the hash of a call and a word on the same lines.
func CallWord(call, word uint32) uint32 { return call*31 + word }

// calledSomehow reports whether the word at i is called; Ruby needs no parentheses.
func (u *unit) calledSomehow(i int) bool {
	if u.called(i) {
		return true
	}
	if u.lang.shape != ends || Everywhere(u.at(i)) {
		return false
	}
	return u.at(i-1) == "." || u.tok[i].First && i+1 < len(u.tok) && !u.tok[i+1].First &&
		(u.isWord(i+1) || u.at(i+1) == ":" || u.at(i+1) == "@")
}

// linesAround returns the tokens of the lines of the call at i, up to its end.
func (u *unit) linesAround(i int, d *decl) (from, to int) {
	from, to = i, i+1
	for from > d.body && u.tok[from-1].Line == u.tok[i].Line && i-from < maxTypes {
		from--
	}
	if u.at(to) == "(" {
		to = u.closer(to)
	}
	last := u.tok[to-1].Line
	for to < d.end && u.tok[to].Line == last {
		to++
	}
	return from, min(to, d.end, i+maxBlock)
}

// appendAsked appends the names of values: words that are not called, selected from, or keywords.
// The last token only follows.
func appendAsked(b multiset.Hashes, tokens []lex.Token) multiset.Hashes {
	for i := range len(tokens) - 1 {
		t, next := &tokens[i], tokens[i+1].S
		if t.Kind == lex.Word && !oneOf(next, ".", "?.", "->", "::", "(") && !connectives()[t.S] {
			b = append(b, t.Hash)
		}
	}
	return b
}

// connectives are keywords that occur in conditions.
var connectives = sync.OnceValue(wordSet("if elif unless and or not in is null nil None undefined true false True " +
	"False typeof instanceof var let const out as when with end then this self"))

// harmless reports whether a call only converts, stores or logs a value. Clamping is not harmless.
func harmless(name string) bool {
	s := plain(strings.TrimPrefix(name, "$"))
	return harmlessCalls()[s] || loggingCalls()[s]
}

var harmlessCalls = sync.OnceValue(wordSet("int float str string bool number double decimal long bigint boolean " +
	"object bytes char int64 int32 uint64 float64 parseint parsefloat tostring tos toi tof toint tolong todouble " +
	"tofloat toboolean valueof repr hex ord chr fixed tofixed setscale scale round floor ceil ceiling trunc abs " +
	"sign sqrt pow divmod strip lstrip rstrip trim trimend trimstart trimspace trimsuffix trimprefix trimleft " +
	"trimright ltrim rtrim removeprefix removesuffix chomp squeeze lower upper tolower toupper lowercase " +
	"uppercase tolowercase touppercase casefold title capitalize downcase upcase lcfirst ucfirst strtolower " +
	"strtoupper ucwords tolowerinvariant toupperinvariant toasciilowercase toasciiuppercase normalize replace " +
	"replaceall strreplace gsub sub split splitn rsplit explode implode join startswith endswith startwith " +
	"hasprefix hassuffix contains includes include strcontains strstartswith strendswith format sprintf substring " +
	"substr slice padstart padend padleft padright ljust rjust center concat stringof repeat indexof lastindexof " +
	"index rindex charat codepointat bytesize orempty isempty isnotempty isblank isnotblank empty len length size " +
	"count sort sorted sortby ksort usort reverse reversed map filter reduce foreach each keys values items " +
	"entries copy clone cloned deepcopy dup freeze arrayvalues arraykeys arraymerge arrayunique list dict tuple " +
	"set array slice hashmap vec mapof listof setof enumerate zip range sum any all first last head tail flatten " +
	"distinct uniq unique toset tolist toarray toarraylist tovec collect iter append push pushback add addall " +
	"extend insert put update delete remove clear pop shift unshift incr increment decrement get getordefault " +
	"setdefault fetchorelse has haskey containskey now time date datetime utcnow today instant nanotime " +
	"currenttimemillis perfcounter monotonic since sub touniversaltime localtime errorf wrap wrapf withstack new " +
	"sleep lock unlock rlock runlock close defer fmt intoiter into toowned asref asstr unwrap owned"))

// corrects reports whether a call clamps a value and assigns it, instead of rejecting it.
func (u *unit) corrects(i, begin int) bool {
	if !bounds()[plain(u.at(i))] {
		return false
	}
	for j := i; j > max(begin, i-maxTypes); j-- {
		s := u.at(j)
		if s == ";" || s == "{" || s == "}" {
			return false
		}
		if u.kindAt(j) == lex.Op && s == "=" && u.isWord(j-1) {
			return true
		}
	}
	return false
}

// bounds are names of calls that clamp a value.
var bounds = sync.OnceValue(wordSet("min max clamp coercein coerceatleast coerceatmost clip"))
