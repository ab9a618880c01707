package endpoint

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// The variables with the addresses of Gemini CLI: with a key, and with a login at Google.
const (
	varGemini     = "GOOGLE_GEMINI_BASE_URL"
	varCodeAssist = "CODE_ASSIST_ENDPOINT"
	codeAssist    = "code-assist"
)

// geminiSettings are the settings of Gemini CLI that choose its provider.
type geminiSettings struct {
	Security struct {
		Auth struct {
			Type string `json:"selectedType"`
		} `json:"auth"`
	} `json:"security"`
}

// ofGemini returns the addresses of Gemini CLI. A variable in a file .env counts if it is not set.
func ofGemini(p Place) (map[string]string, error) {
	home := p.folder("GEMINI_CLI_HOME", "")
	auth := ""
	for _, dir := range []string{home, p.Dir} {
		var s geminiSettings
		if err := readJSON(filepath.Join(dir, ".gemini", "settings.json"), &s); err != nil {
			return nil, err
		}
		auth = cmp.Or(s.Security.Auth.Type, auth)
	}
	value := func(name string) string {
		return cmp.Or(p.value(name), dotenv(name, append(dotenvFiles(p.Dir), filepath.Join(home, ".gemini", ".env"),
			filepath.Join(home, ".env"))))
	}
	if auth == "vertex-ai" || auth == "" && value("GOOGLE_GENAI_USE_VERTEXAI") == "true" {
		return nil, unknown("Gemini CLI asks Google Vertex, which meters do not read")
	}
	return map[string]string{
		Google:     cmp.Or(value(varGemini), "https://generativelanguage.googleapis.com"),
		codeAssist: cmp.Or(value(varCodeAssist), "https://cloudcode-pa.googleapis.com"),
	}, nil
}

// dotenvFiles returns the files in which Gemini CLI looks for variables, the nearest one first.
func dotenvFiles(dir string) []string {
	var files []string
	for {
		files = append(files, filepath.Join(dir, ".gemini", ".env"), filepath.Join(dir, ".env"))
		if dir == filepath.Dir(dir) {
			return files
		}
		dir = filepath.Dir(dir)
	}
}

// dotenv returns the value of a variable in the first of the files that exists.
func dotenv(name string, files []string) string {
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
			if strings.TrimSpace(key) == name {
				return strings.Trim(strings.TrimSpace(value), `"'`)
			}
		}
		return ""
	}
	return ""
}

// GeminiVariables returns the variables with which Gemini CLI uses other addresses.
func GeminiVariables(to map[string]string) []string {
	var env []string
	for name, variable := range map[string]string{Google: varGemini, codeAssist: varCodeAssist} {
		if to[name] != "" {
			env = append(env, variable+"="+to[name])
		}
	}
	return env
}
