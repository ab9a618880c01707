package machine

// For tests.
var (
	CompareUpTo = compare
	Identify    = identify
)
