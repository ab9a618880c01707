package walk_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/corpus/walk"
)

const privateKey = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n"

// TestSecretsInFoldersAreLeftOut proves that files of keys and passwords are skipped in folders and
// globs, and that files which only look like them are read.
func TestSecretsInFoldersAreLeftOut(t *testing.T) {
	t.Parallel()
	secret := map[string]string{
		".env": "A=1", ".env.local": "A=1", ".env.production": "A=1", "deploy/prod.env": "A=1", "sub/.ENV": "A=1",
		"id_rsa": privateKey, "keys/id_ed25519": "x", "server.pem": privateKey, "tls.key": privateKey,
		"dos.key":    strings.ReplaceAll(privateKey, "\n", "\r\n"),
		"backup.asc": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
		"deploy_key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n",
		".netrc":     "machine a login b password c", ".pgpass": "h:5432:d:u:p", ".git-credentials": "https://u:p@h",
		".aws/credentials": "[default]", "store.p12": "binary", "app.jks": "binary", "passwords.kdbx": "x",
		".npmrc": "//registry.npmjs.org/:_authToken=npm_123", ".pypirc": "[pypi]", ".htpasswd": "u:$apr1$",
		"service-account.json": `{"private_key": "-----BEGIN PRIVATE KEY-----"}`,
		"credentials.json":     `{"installed": {"client_secret": "GOCSPX-123456"}}`,
	}
	plain := map[string]string{
		".env.example": "A=", ".env.sample": "A=", ".env.template": "A=", "example.env": "A=", ".envrc": "use nix",
		"env": "text", "environment.md": "text", "id_rsa.pub": "ssh-rsa AAAA", "cert.pem": "-----BEGIN CERTIFICATE-----\n",
		"public.pem": "-----BEGIN PUBLIC KEY-----\n", "answer.key": "1 b\n2 c\n", "keys.md": privateKey,
		"key_test.go": "const k = `" + privateKey + "`", "README": "how to make an id_rsa", ".npmrc.md": "_authToken=x",
		"web/.npmrc": "registry=https://registry.npmjs.org\n//r/:_authToken=${NPM_TOKEN}\n", "credentials.go": "package x",
		"docs/credentials": "how to get them", "tokens.json": `{"tokens": 5}`, "dotenv.py": "import os", "x.env.md": "text",
	}
	all := make(map[string]string)
	for _, m := range []map[string]string{secret, plain} {
		for name, text := range m {
			all[name] = text
		}
	}
	root := files(t, all)
	for _, arg := range []string{".", "**/*", "**/.*"} {
		got, err := into(t, root, arg)
		if err != nil {
			t.Fatal(err)
		}
		for name := range secret {
			if _, read := got.texts[name]; read {
				t.Errorf("%s: %s was read", arg, name)
			}
			if arg == "." && (got.kinds[name] != walk.KindSecret || got.skipped[name] == "") {
				t.Errorf("%s is skipped as %q, %q", name, got.kinds[name], got.skipped[name])
			}
		}
		for name := range plain {
			if _, read := got.texts[name]; !read && arg == "." {
				t.Errorf("%s was not read: %s", name, got.skipped[name])
			}
		}
	}
	got, err := into(t, root, ".env", "server.pem", ".env.example")
	if err != nil || len(got.names) != 3 || !strings.HasPrefix(got.notes[".env"], walk.NoteSecret) ||
		got.notes[".env.example"] != "" {
		t.Errorf("named: %q, notes %q, %v", got.names, got.notes, err)
	}
}

// TestBuildFoldersAreLeftOut proves that folders of dependencies and build output are skipped, and
// that folders which only have such names are read.
func TestBuildFoldersAreLeftOut(t *testing.T) {
	t.Parallel()
	output := []string{"js/node_modules/", "py/__pycache__/", "py/.venv/", "py/env/", "py/.mypy_cache/", "py/dist/",
		"rust/target/", "java/target/", "gradle/build/", "js/dist/", "js/.next/", "cc/out/", "net/obj/", "net/bin/",
		"ex/_build/", "ex/deps/", "ios/Pods/", "cache/", "tf/.terraform/", "nb/.ipynb_checkpoints/"}
	list := map[string]string{"py/pyproject.toml": "x", "py/.venv/pyvenv.cfg": "x", "py/env/pyvenv.cfg": "x",
		"rust/Cargo.toml": "x", "java/pom.xml": "x", "gradle/build.gradle.kts": "x", "js/package.json": "x",
		"cc/out/CMakeCache.txt": "x", "net/app.csproj": "x", "ex/mix.exs": "x", "ios/Podfile": "x",
		"cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55"}
	read := []string{"plain/target/a.txt", "plain/dist/a.txt", "plain/build/a.txt", "plain/bin/run.sh",
		"cc/build/rules.mk",
		"go/vendor/m/m.go", "plain/deps/list.txt", "plain/obj/cube.obj", "js/build/webpack.js", "py/env2/a.py",
		"plain/env/settings.py", "plain/_build/a.txt", "plain/out/a.txt", "plain/Pods/a.txt"}
	for _, name := range output {
		list[name+"x.txt"] = "output"
	}
	for _, name := range read {
		list[name] = "text"
	}
	root := files(t, list)
	got, err := into(t, root, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range output {
		if _, found := got.texts[name+"x.txt"]; found || got.kinds[name] != walk.KindBuild {
			t.Errorf("%s is skipped as %q, %q", name, got.kinds[name], got.skipped[name])
		}
	}
	for _, name := range read {
		if got.texts[name] == "" {
			t.Errorf("%s was not read: %q", name, got.skipped)
		}
	}
	for _, arg := range []string{"js/node_modules", "js/node_modules/*.txt", "js/node_modules/x.txt", "*/node_modules/*"} {
		if got, err := into(t, root, arg); err != nil || len(got.names) != 1 {
			t.Errorf("%s: %q, %v", arg, got.names, err)
		}
	}
	s := newSink()
	err = walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"."}, NoIgnore: true}, s)
	if err != nil || s.texts["js/node_modules/x.txt"] == "" {
		t.Errorf("without rules: %q, %v", s.names, err)
	}
}
