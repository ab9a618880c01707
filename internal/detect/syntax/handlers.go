package syntax

import "strings"

// handlerAt returns the handler that begins at i; nil for none.
func (u *unit) handlerAt(i int) *handler {
	h := &handler{Line: u.line(i)}
	from, to := 0, 0
	switch u.lang.shape {
	case indents:
		colon := u.colon(i+1, len(u.tok))
		from, to = colon, u.indentedEnd(i, colon, len(u.tok))
		h.Broad = colon == i+2 || u.at(i+1) == "Exception" || u.at(i+1) == "BaseException" || u.at(i+1) == "AssertionError"
		h.S = u.text(i, min(to, i+12))
	case ends:
		if !u.tok[i].First { // value rescue nil
			h.Broad, h.Dropped, h.S = true, u.emptyResult(i+1), u.text(i, u.lineEnd(i))
			return h
		}
		from = u.lineEnd(i)
		to = u.rescueEnd(from)
		h.Broad = from-i <= 1 || u.at(i+1) == "=>" || u.at(i+1) == "StandardError" || u.at(i+1) == "Exception"
		h.S = u.text(i, min(to+1, len(u.tok), i+12))
	default:
		return u.catchAt(i, h)
	}
	h.Dropped, h.Body = u.dropped(from, to), u.mixed(1, from, to)
	return h
}

// catchAt reads a catch block, or .catch(() => {}) of JavaScript.
func (u *unit) catchAt(i int, h *handler) *handler {
	j := i + 1
	if u.at(i-1) == "." {
		if u.at(j) != "(" || u.lang.Name != "javascript" && u.lang.Name != "typescript" {
			return nil
		}
		end := u.closer(j)
		h.Broad, h.S, h.Body = true, u.text(i, min(end, i+14)), u.mixed(1, j, end)
		for k := j + 1; k < min(end, j+8); k++ {
			if u.at(k) == "=>" {
				h.Dropped = u.at(k+1) == "{" && u.dropped(k+2, u.closer(k+1)-1) || u.at(k+1) == "null" || u.at(k+1) == "undefined"
				h.Fallback = u.at(k+1) != "{" && !u.callsAny(k+1, end)
			}
		}
		return h
	}
	h.Broad = true
	if u.at(j) == "(" {
		for k := j; k < u.closer(j); k++ {
			if w := u.at(k); u.isWord(k) && strings.HasSuffix(w, "Exception") && w != "Exception" || w == ":" {
				h.Broad = u.at(k+1) == "any" || u.at(k+1) == "unknown" || u.at(k+1) == "Exception" || u.at(k+1) == "Throwable"
			}
		}
		j = u.closer(j)
	}
	if u.at(j) == "when" && u.at(j+1) == "(" {
		j = u.closer(j + 1)
	}
	if u.at(j) != "{" {
		return nil
	}
	end := u.closer(j)
	h.S = u.text(i, min(end, i+14))
	h.Dropped, h.Body = u.dropped(j+1, end-1), u.mixed(1, j, end)
	return h
}

// dropped reports whether a handler ignores its error.
func (u *unit) dropped(from, to int) bool {
	for to > from && u.at(to-1) == ";" {
		to--
	}
	if from >= to {
		return true
	}
	if to-from == 1 {
		s := u.at(from)
		return oneOf(s, "pass", "nil", "null", "return", "continue", "...", "false", "true")
	}
	return u.at(from) == "return" && to-from <= 3 && (u.emptyResult(from+1) || strings.EqualFold(u.at(from+1), "true"))
}
