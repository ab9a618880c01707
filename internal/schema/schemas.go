// Package schema holds the published JSON Schemas (draft 2020-12) of the files
// and outputs that other programs read and write. Each has examples, which are
// tested. perdure schema prints them; imports hold files of others against them.
package schema

import "embed"

// FS holds the schemas by name, each with the ending .json.
//
//go:embed *.json
var FS embed.FS
