package price

// ParseFile lets tests read a file's text without a file.
func ParseFile(name string, text []byte) error {
	_, err := parse(name, text)
	return err
}
