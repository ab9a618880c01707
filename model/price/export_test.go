package price

// ParseFile lets tests read a file's text without a file.
func ParseFile(name string, text []byte) error {
	_, err := parse(name, text)
	return err
}

// Address is address, which makes keys of base URLs.
func Address(baseURL string) string { return address(baseURL) }

// BuiltInTable is the text of the built-in table.
func BuiltInTable() string { return table }
