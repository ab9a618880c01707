package sqldb

import "testing"

func TestPositional(t *testing.T) {
	t.Parallel()
	for q, want := range map[string]string{
		"SELECT 1":                                "SELECT 1",
		"INSERT INTO t VALUES ($1, $2)":           "INSERT INTO t VALUES (?, ?)",
		"SELECT $2, $1":                           "SELECT $2, $1",
		"UPDATE t SET a = $1, b = $1":             "UPDATE t SET a = $1, b = $1",
		"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)": "VALUES (?,?,?,?,?,?,?,?,?,?)",
		"SELECT $10":                              "SELECT $10",
		"SELECT '$' || $1":                        "SELECT '$' || $1",
	} {
		if got := positional(q); got != want {
			t.Errorf("positional(%q) = %q, want %q", q, got, want)
		}
	}
}
