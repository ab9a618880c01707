package cleancheck

// For tests.
var (
	NewPlace  = newPlace
	Elsewhere = elsewhere
)
