package decider_test

import "testing"

// FuzzFind: any text of a manifest and of its lock file is read, and a change is undone or used as it is.
func FuzzFind(f *testing.F) {
	for _, name := range []string{"package.json", "pyproject.toml", "go.mod", "Gemfile", "requirements.txt", "setup.py",
		"environment.yml"} {
		f.Add(name, "", `{"dependencies":{"a":"1"}}`, "requests.py")
		f.Add(name, "require a.b/c v1\n", "[project]\ndependencies = [1, \"x>=1\", {}]\n", "a/__init__.py")
		f.Add(name, `{"dependencies":[]}`, "gem 'a', '1'\n- b=1\ninstall_requires=['c']", "src/test/A.java")
	}
	f.Fuzz(func(t *testing.T, name, old, now, added string) {
		if name == added || name == "" || added == "" {
			return
		}
		found := find(t, map[string]string{name: old}, map[string]string{name: "-" + now, added: "x"})
		kept := 0
		for i := range found.Deciders {
			if d := &found.Deciders[i]; d.Adds {
				kept++
			}
		}
		if len(found.Deciders) > kept && len(found.Put)+len(found.Drop) == 0 {
			t.Errorf("%q: nothing is undone: %+v", name, found)
		}
	})
}
