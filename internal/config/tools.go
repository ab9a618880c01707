package config

import (
	"encoding/json"
	"strings"
)

// toolSection is the section of the tools of models, whose keys are tools.NAME.FIELD.
const toolSection = "tools"

// Tool is a tool of the section tools.
type Tool struct {
	// Command is exec: and a command line.
	Command string
	// Description is what models read of it, Parameters a JSON Schema of its arguments.
	Description, Parameters string
}

// tool returns the tool of a name and creates it if it does not exist.
func (c *Config) tool(name string) *Tool {
	if c.Tools == nil {
		c.Tools = make(map[string]*Tool)
	}
	if c.Tools[name] == nil {
		c.Tools[name] = new(Tool)
	}
	return c.Tools[name]
}

// toolSettings returns the settings of a tool of c, which it creates. They exist in the file
// only.
func toolSettings(c *Config, name string) []setting {
	t := c.tool(name)
	key := func(field string) string { return toolSection + "." + name + "." + field }
	return []setting{
		{key: key("command"), help: "exec:COMMAND", at: &t.Command, check: command, acts: acts(effectRuns)},
		{key: key("description"), help: "what models read of it", lines: true, at: &t.Description},
		{key: key("parameters"), help: "JSON Schema of its arguments", lines: true, at: &t.Parameters,
			check: optional(jsonText)},
	}
}

func command(value any) string {
	if rest, ok := strings.CutPrefix(*value.(*string), "exec:"); !ok || strings.TrimSpace(rest) == "" {
		return "write exec: and a command, such as exec:./weather.sh"
	}
	return ""
}

func jsonText(text string) string {
	if !json.Valid([]byte(text)) {
		return `is not JSON; write for example '{"type": "object"}'`
	}
	return ""
}

// toolTemplate is the part of a new file on tools.
const toolTemplate = `
# Tools of the models of planners repl and search, see --tool:
# tools:
#   weather:
#     command: exec:./weather.sh
#     description: Returns the weather in a city now.
#     parameters: '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
`
