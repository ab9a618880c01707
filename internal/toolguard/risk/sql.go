package risk

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// sqlNoise matches comments, strings and quoted names of SQL.
var sqlNoise = lazyregexp.New(`--[^\n]*|(?s:/\*.*?\*/)|'(?:[^']|'')*'|"[^"]*"|` + "`[^`]*`" + `|(?s:\$\$.*?\$\$)`)

// documentDrop matches calls of MongoDB, and commands of Redis, that delete a whole collection or
// database.
var documentDrop = lazyregexp.New(`\bdropDatabase\(|\.drop\(|\.(?:deleteMany|remove)\(\s*(?:\{\s*\})?\s*\)|` +
	`(?im:^\s*(?:flushall|flushdb)\b)`)

// destroysData reports whether a text has a statement that deletes data of a database, or all
// rows of a table.
func destroysData(text string) bool {
	if len(text) > maxCommand {
		return false
	}
	if documentDrop().MatchString(text) {
		return true
	}
	bare := strings.ToUpper(sqlNoise().ReplaceAllStringFunc(text, func(part string) string {
		if strings.HasPrefix(part, "--") || strings.HasPrefix(part, "/*") {
			return " "
		}
		return " x "
	}))
	return slices.ContainsFunc(strings.Split(bare, ";"), destroysRows)
}

// destroysRows reports whether one statement of SQL, in upper case, deletes more than the rows
// that it names.
func destroysRows(statement string) bool {
	words := strings.FieldsFunc(statement, func(c rune) bool { return strings.ContainsRune(" \t\r\n(),", c) })
	if len(words) < 2 || words[0] == "EXPLAIN" && words[1] != "ANALYZE" {
		return false
	}
	where := slices.Contains(words, "WHERE")
	for i, word := range words[:len(words)-1] {
		next := words[i+1]
		switch {
		case word == "DELETE" && next == "FROM" && (i == 0 || words[0] == "WITH" || words[0] == "EXPLAIN") &&
			!slices.Contains(words[i:], "WHERE"):
			return true
		case words[0] == "ALTER" && word == "DROP" && (next == "COLUMN" || next == "PARTITION"):
			return true
		}
	}
	switch words[0] {
	case "DROP":
		return slices.Contains([]string{"TABLE", "DATABASE", "SCHEMA", "KEYSPACE", "TABLESPACE", "OWNED", "MATERIALIZED",
			"SEQUENCE", "USER", "ROLE", "COLLECTION"}, words[1])
	case "TRUNCATE":
		return true
	case "UPDATE":
		return slices.Contains(words, "SET") && !where
	}
	return false
}

// stringsIn returns the string values in a JSON document, at any depth.
func stringsIn(doc []byte) []string {
	var value any
	if json.Unmarshal(doc, &value) != nil {
		return nil
	}
	var list []string
	open := []any{value}
	for len(open) > 0 && len(list) < maxNames {
		one := open[len(open)-1]
		open = open[:len(open)-1]
		switch one := one.(type) {
		case string:
			list = append(list, one)
		case []any:
			open = append(open, one...)
		case map[string]any:
			for _, inner := range one {
				open = append(open, inner)
			}
		}
	}
	slices.Sort(list)
	return list
}
