// Package schema holds the published JSON Schemas (draft 2020-12) of the files
// and outputs that other programs read and write. Each has tested examples. The command
// perdure schema prints them, and imports validate files with them.
package schema

import "embed"

// FS holds the schemas by name, each with the ending .json.
//
//go:embed *.json
var FS embed.FS
