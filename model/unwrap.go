package model

// Unwrapper is implemented by models that wrap another one, as [Guarded] does.
type Unwrapper interface {
	Unwrap() Model
}

// AsWindower finds the [Windower] in m or in what m wraps.
func AsWindower(m Model) (Windower, bool) { return find[Windower](m) }

// AsPricer finds the [Pricer] in m or in what m wraps.
func AsPricer(m Model) (Pricer, bool) { return find[Pricer](m) }

// Announcer is implemented by models that call [Request.OnSend].
type Announcer interface {
	// Announces reports whether OnSend is called before each request.
	Announces() bool
}

// Announces reports whether m, or what m wraps, calls [Request.OnSend] before each
// request. For other models the caller of Generate has to call it.
func Announces(m Model) bool {
	a, ok := find[Announcer](m)
	return ok && a.Announces()
}

// find looks for an ability from the outside in, so that a wrapper may
// override what it wraps.
func find[T any](m Model) (T, bool) {
	for m != nil {
		if found, ok := m.(T); ok {
			return found, true
		}
		w, ok := m.(Unwrapper)
		if !ok {
			break
		}
		m = w.Unwrap()
	}
	var none T
	return none, false
}
