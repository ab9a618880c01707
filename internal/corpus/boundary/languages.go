package boundary

// language describes how the declarations of a programming language, or the parts of a
// similar text, begin. To add a language, add an entry to the table.
type language struct {
	names      []string // of interpreters in #! lines
	extensions []string
	files      []string // names of files without an extension
	forms      []form
	// declarations begin lines that declare something.
	declarations []string
	// decorators begin lines that belong to the declaration after them.
	decorators []string
	// indented is set if indentation determines nesting; otherwise brackets do.
	indented bool
	// closers begin lines that end or continue what began before.
	closers []string
	// newline is set if the end of a line ends a statement. Otherwise a semicolon does, or
	// in an indented language any line at the margin begins one unless semicolon is set.
	newline   bool
	semicolon bool
	// directive begins lines that are preprocessor directives, as in C; 0 for none.
	directive byte
}

func slashComments() []form {
	return []form{{open: "//", comment: true}, {open: "/*", close: "*/", comment: true, lines: true}}
}

func doubleQuotes() form { return form{open: `"`, close: `"`, escape: '\\'} }

func hashComments() form { return form{open: "#", comment: true} }

func with(forms []form, more ...form) []form { return append(forms, more...) }

// languageTable returns all languages.
func languageTable() []language {
	return append(append(bracketLanguages(), scriptLanguages()...), dataLanguages()...)
}

func bracketLanguages() []language {
	char := form{open: "'", char: true}
	single := form{open: "'", close: "'", escape: '\\'}
	text := form{open: `"""`, close: `"""`, escape: '\\', lines: true}
	lines := form{open: `"`, close: `"`, escape: '\\', lines: true}
	return []language{
		{
			names: []string{"go"}, extensions: []string{".go"}, newline: true,
			forms:        with(slashComments(), doubleQuotes(), char, form{open: "`", close: "`", lines: true}),
			declarations: []string{"func ", "func(", "type ", "var ", "var(", "const ", "const(", "import ", "package "},
		},
		{
			names:      []string{"javascript", "node", "deno", "bun"},
			extensions: []string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte"}, newline: true,
			forms: with(slashComments(), doubleQuotes(), single, form{open: "`", close: "`", escape: '\\', lines: true},
				form{open: "/", pattern: true}),
			declarations: []string{"function ", "function* ", "async function ", "class ", "abstract class ", "export ",
				"interface ", "type ", "enum ", "namespace ", "module ", "declare ", "const ", "let ", "var ", "import "},
			decorators: []string{"@"}, closers: []string{"else", "catch", "finally"},
		},
		{
			names: []string{"java"}, extensions: []string{".java"},
			forms: with(slashComments(), text, doubleQuotes(), char),
			declarations: []string{"public ", "private ", "protected ", "class ", "interface ", "@interface ", "enum ",
				"record ", "abstract ", "final ", "sealed ", "static ", "package ", "import "},
			decorators: []string{"@"}, closers: []string{"else", "catch", "finally", "while"},
		},
		{
			names: []string{"c"}, extensions: []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inl",
				".ino", ".cu", ".m", ".mm"},
			forms: with(slashComments(), form{open: `R"(`, close: `)"`, lines: true}, doubleQuotes(), char),
			declarations: []string{"static ", "struct ", "class ", "enum ", "union ", "typedef ", "namespace ", "template",
				"extern ", "inline ", "using ", "int ", "void ", "const ", "unsigned ", "char ", "bool ", "@interface",
				"@implementation"},
			decorators: []string{"[["}, closers: []string{"else", "catch", "while"}, directive: '#',
		},
		{
			names: []string{"csharp"}, extensions: []string{".cs", ".csx"},
			forms: with(slashComments(), form{open: `"""`, close: `"""`, lines: true}, form{open: `@"`, close: `"`, lines: true},
				form{open: `$@"`, close: `"`, lines: true}, doubleQuotes(), char),
			declarations: []string{"public ", "private ", "protected ", "internal ", "class ", "interface ", "enum ",
				"record ", "struct ", "abstract ", "sealed ", "static ", "partial ", "namespace ", "using ", "delegate "},
			decorators: []string{"["}, closers: []string{"else", "catch", "finally", "while"}, directive: '#',
		},
		{
			names: []string{"rust"}, extensions: []string{".rs"},
			forms: with(slashComments(), form{open: `r#"`, close: `"#`, lines: true},
				form{open: `r"`, close: `"`, lines: true}, lines, char),
			declarations: []string{"fn ", "pub ", "pub(", "impl ", "impl<", "struct ", "enum ", "trait ", "mod ", "use ",
				"const ", "static ", "type ", "unsafe ", "async ", "extern ", "macro_rules!"},
			decorators: []string{"#[", "#!["}, closers: []string{"else"},
		},
		{
			names: []string{"php"}, extensions: []string{".php", ".phtml"},
			forms: with(slashComments(), form{open: "#[", close: "]"}, hashComments(), lines,
				form{open: "'", close: "'", escape: '\\', lines: true}, form{open: "<<<", here: true}),
			declarations: []string{"function ", "class ", "abstract ", "final ", "interface ", "trait ", "enum ",
				"namespace ", "use ", "const ", "public ", "private ", "protected ", "static "},
			decorators: []string{"#["}, closers: []string{"else", "catch", "finally", "while"},
		},
		{
			names: []string{"kotlin", "swift", "scala"}, extensions: []string{".kt", ".kts", ".swift", ".scala", ".sc",
				".groovy", ".gradle", ".dart"},
			newline: true, forms: with(slashComments(), text, doubleQuotes(), char),
			declarations: []string{"fun ", "func ", "def ", "class ", "data class ", "interface ", "enum ", "object ",
				"trait ", "struct ", "extension ", "protocol ", "public ", "private ", "protected ", "internal ", "open ",
				"abstract ", "override ", "case class ", "val ", "var ", "let ", "import ", "package "},
			decorators: []string{"@"}, closers: []string{"else", "catch", "finally"},
		},
	}
}

func scriptLanguages() []language {
	return []language{
		{
			names: []string{"python"}, extensions: []string{".py", ".pyi", ".pyw", ".pyx"},
			files: []string{"SConstruct", "BUILD", "WORKSPACE"},
			forms: []form{
				hashComments(), {open: `"""`, close: `"""`, escape: '\\', lines: true},
				{open: "'''", close: "'''", escape: '\\', lines: true},
				doubleQuotes(), {open: "'", close: "'", escape: '\\'},
			},
			declarations: []string{"def ", "class ", "async def "}, decorators: []string{"@"}, indented: true,
			closers: []string{"else", "elif", "except", "finally", ")", "]", "}"},
		},
		{
			names: []string{"ruby"}, extensions: []string{".rb", ".rake", ".gemspec"},
			files: []string{"Rakefile", "Gemfile", "Vagrantfile"},
			forms: []form{
				hashComments(), {open: "=begin", close: "=end", comment: true, lines: true}, {open: "<<", here: true},
				{open: `"`, close: `"`, escape: '\\'}, {open: "'", close: "'", escape: '\\'}, {open: "/", pattern: true},
			},
			declarations: []string{"def ", "class ", "module ", "private ", "public "}, indented: true,
			closers: []string{"end", "else", "elsif", "rescue", "ensure", "when", ")", "]", "}"},
		},
		{
			names: []string{"sh", "bash", "zsh", "dash", "ksh"}, extensions: []string{".sh", ".bash", ".zsh", ".ksh", ".bats"},
			forms: []form{
				{open: "#", comment: true, apart: true}, {open: "<<<", close: " "}, {open: "<<", here: true},
				{open: `"`, close: `"`, escape: '\\', lines: true}, {open: "'", close: "'", lines: true},
			},
			declarations: []string{"function "}, indented: true,
			closers: []string{"fi", "done", "esac", "then", "do", "else", "elif", ";;", ")", "}", "]"},
		},
		{
			names: []string{"sql"}, extensions: []string{".sql", ".ddl", ".psql", ".pgsql"},
			forms: []form{
				{open: "--", comment: true}, {open: "/*", close: "*/", comment: true, lines: true},
				{open: "'", close: "'", lines: true}, {open: `"`, close: `"`}, {open: "$$", close: "$$", lines: true},
			},
			declarations: []string{"CREATE ", "ALTER ", "DROP ", "INSERT ", "UPDATE ", "DELETE ", "SELECT ", "WITH ",
				"GRANT ", "COPY ", "create ", "alter ", "drop ", "insert ", "update ", "delete ", "select ", "with "},
			indented: true, semicolon: true, closers: []string{"end", "END", ")"},
		},
		{
			names: []string{"lua", "haskell"}, extensions: []string{".lua", ".hs", ".elm"},
			forms: []form{{open: "--", comment: true}, doubleQuotes()},
			declarations: []string{"function ", "local function ", "module ", "data ", "instance ", "class ", "import ",
				"type "},
			indented: true, closers: []string{"end", "else", "elseif", "where", ")", "]", "}"},
		},
		{
			names:      []string{"perl", "elixir", "julia", "r", "nim", "crystal"},
			extensions: []string{".pl", ".pm", ".ex", ".exs", ".jl", ".r", ".nim", ".cr"},
			forms: []form{{open: "#", comment: true, apart: true}, {open: `"""`, close: `"""`, lines: true},
				doubleQuotes()},
			declarations: []string{"function ", "sub ", "package ", "def ", "defmodule ", "module ", "struct ", "proc ",
				"import ", "use "},
			indented: true, closers: []string{"end", "else", "elseif", "rescue", ")", "]", "}"},
		},
	}
}

func dataLanguages() []language {
	return []language{
		{
			names: []string{"json"}, extensions: []string{".json", ".json5", ".geojson", ".ipynb", ".har", ".webmanifest"},
			newline: true,
			forms:   with(slashComments(), doubleQuotes()),
		},
		{
			names: []string{"yaml"}, extensions: []string{".yaml", ".yml"}, indented: true,
			forms: []form{hashComments()}, declarations: []string{"---"}, closers: []string{"]", "}"},
		},
		{
			names: []string{"toml"}, extensions: []string{".toml", ".ini", ".cfg", ".conf", ".properties", ".env"},
			indented: true,
			forms: []form{hashComments(), {open: ";", comment: true}, {open: `"""`, close: `"""`, lines: true},
				doubleQuotes()},
			declarations: []string{"["}, closers: []string{"]", "}"},
		},
		{
			names: []string{"make"}, extensions: []string{".mk", ".dockerfile", ".cmake"},
			files:    []string{"Makefile", "makefile", "GNUmakefile", "Dockerfile", "CMakeLists.txt"},
			indented: true, forms: []form{hashComments()}, closers: []string{"endif", "else", "endef", ")"},
		},
		{
			names: []string{"markup"}, extensions: []string{".xml", ".html", ".htm", ".xhtml", ".svg", ".xsd", ".xsl",
				".plist", ".csproj", ".pom"},
			indented: true, forms: []form{{open: "<!--", close: "-->", comment: true, lines: true}},
			declarations: []string{"<"}, closers: []string{"</"},
		},
		{
			names: []string{"css"}, extensions: []string{".css", ".scss", ".less", ".proto", ".graphql", ".tf", ".hcl",
				".thrift"},
			forms: with(slashComments(), doubleQuotes()), declarations: []string{"message ", "service ", "enum ", "@media",
				"resource ", "type "},
		},
	}
}
