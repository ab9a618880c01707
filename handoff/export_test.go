package handoff

// ContractIn resolves a reference in a text.
func ContractIn(data []byte, ref string) (*Contract, error) { return contractIn("prd.json", data, ref) }

// Clip shortens a text as long ones are in checkpoints.
func Clip(text string) string { return clipped(text, partialSize) }
