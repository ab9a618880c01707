package sealed

// For tests.
var (
	NewPlace  = newPlace
	Elsewhere = elsewhere
)
