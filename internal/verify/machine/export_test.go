package machine

// For tests.
var (
	CompareUpTo = compare
	Identify    = identify
	GetFold     = get
	SetFold     = set
)
