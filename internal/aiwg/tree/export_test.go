package tree

// CheckWritten compares the documents that exports write with the table of fields.
func CheckWritten() error { return checkWritten() }
