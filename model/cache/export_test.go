package cache

// Decode lets tests read an entry's bytes.
func Decode(data []byte, key string) (text string, err error) {
	b, err := decode(data, key, nil)
	if err != nil {
		return "", err
	}
	return b.Response.Text, nil
}
