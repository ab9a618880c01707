package walk

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// buildFolder returns why a folder has dependencies or build output, "" if that is not certain.
func buildFolder(path string) string {
	name := filepath.Base(path)
	has := func(markers ...string) string {
		for _, m := range markers {
			found, err := filepath.Glob(filepath.Join(quoteGlob(filepath.Dir(path)), m))
			if err == nil && len(found) > 0 {
				return "it is a build folder: " + filepath.Base(found[0]) + " is next to it"
			}
		}
		return ""
	}
	within := func(markers ...string) string {
		for _, m := range markers {
			if _, err := os.Lstat(filepath.Join(path, m)); err == nil {
				return "it is a build folder: it contains " + m
			}
		}
		return ""
	}
	switch name {
	case "node_modules", "bower_components", "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache",
		".gradle", ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".terraform", ".eggs", ".ipynb_checkpoints",
		".dart_tool", ".stack-work", "dist-newstyle", ".zig-cache", "zig-cache", "elm-stuff":
		return "it is a folder of dependencies or build output"
	case "target":
		return has("Cargo.toml", "pom.xml", "build.sbt")
	case "dist":
		return has("package.json", "pyproject.toml", "setup.py")
	case "build":
		if why := has("build.gradle", "build.gradle.kts", "setup.py"); why != "" {
			return why
		}
		return within("CMakeCache.txt", "build.ninja", "CACHEDIR.TAG")
	case "obj", "bin":
		return has("*.csproj", "*.fsproj", "*.vbproj")
	case "_build", "deps":
		return has("mix.exs")
	case "Pods":
		return has("Podfile")
	}
	return within("pyvenv.cfg", "CACHEDIR.TAG", "CMakeCache.txt")
}

// quoteGlob returns a pattern that matches a path.
func quoteGlob(path string) string {
	if runtime.GOOS == "windows" { // where patterns have no escapes
		return path
	}
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(path)
}

// secretHead is the part of a file that is searched for keys.
const secretHead = 64 << 10

var (
	rePrivateKey = lazyregexp.New(`(?m)^-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----\s*$`)
	reNPMToken   = lazyregexp.New(`(?i)(_authToken|_password|_auth|npmAuthToken)["']?\s*[=:]\s*[^$\s]`)
	reJSONSecret = lazyregexp.New(`"(private_key|client_secret|refresh_token|access_token|aws_secret_access_key)"\s*:\s*` +
		`"[^"]{8,}"`)
)

// secretFile returns why a file found in a folder has keys or passwords, "" if it does not seem
// to. Names that other files have too are decided by the content.
func secretFile(path string) string {
	name := strings.ToLower(filepath.Base(path))
	switch {
	case isEnvironment(name):
		return "it is an environment file, which usually has secrets"
	case slices.Contains([]string{"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"}, name):
		return "it is a private key"
	case slices.Contains([]string{".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc", ".git-credentials", ".htpasswd",
		".dockercfg", ".s3cfg", ".boto"}, name), name == "credentials" && filepath.Base(filepath.Dir(path)) == ".aws":
		return "it is a file of passwords"
	case slices.Contains([]string{".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".pkcs12"}, filepath.Ext(name)):
		return "it is a store of keys"
	}
	var pattern func() *regexp.Regexp
	switch ext := filepath.Ext(name); {
	case slices.Contains([]string{".pem", ".key", ".asc", ".gpg", ".p8", ".pk8", ""}, ext):
		pattern = rePrivateKey
	case name == ".npmrc" || name == ".yarnrc" || name == ".yarnrc.yml":
		pattern = reNPMToken
	case ext == ".json" && containsAny(name, "credential", "secret", "service-account", "service_account",
		"serviceaccount", "token"):
		pattern = reJSONSecret
	default:
		return ""
	}
	if pattern().Match(headOf(path)) {
		return "it has a private key or a token"
	}
	return ""
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// isEnvironment reports whether a name is one of a file of environment variables. Examples and
// templates are none.
func isEnvironment(name string) bool {
	rest, ok := strings.CutPrefix(name, ".env")
	if !ok || rest != "" && rest[0] != '.' {
		base, isEnv := strings.CutSuffix(name, ".env")
		if !isEnv {
			return false
		}
		rest = base
	}
	return !containsAny(rest, "example", "sample", "template", "tmpl", "dist", "default", "schema")
}

// headOf returns the beginning of a regular file, nil if it cannot be read.
func headOf(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, secretHead))
	if err != nil {
		return nil
	}
	return bytes.ReplaceAll(head, []byte{'\r'}, nil)
}
