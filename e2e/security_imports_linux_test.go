package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSecurityImportSwapped: while imports of an .aiwg folder run, another process exchanges a file
// of it for a link out of the folder or for a pipe, or its folder for a link. No import reads the
// file outside or waits at the pipe.
func TestSecurityImportSwapped(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(dir, secret string) (a, b string, err error){
		"file for a link": func(dir, secret string) (a, b string, err error) {
			b = filepath.Join(dir, "link.json")
			return filepath.Join(dir, ".aiwg", "rlm", "in", "value.json"), b, os.Symlink(secret, b)
		},
		"folder for a link": func(dir, secret string) (a, b string, err error) {
			b = filepath.Join(dir, "link")
			return filepath.Join(dir, ".aiwg", "rlm", "in"), b, os.Symlink(filepath.Dir(secret), b)
		},
		"file for a pipe": func(dir, _ string) (a, b string, err error) {
			b = filepath.Join(dir, "pipe")
			return filepath.Join(dir, ".aiwg", "rlm", "in", "value.json"), b, unix.Mkfifo(b, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t)
			w.write(".aiwg/rlm/global-state.json", `{"version":"1.0.0","state_id":"state-00000001","variables":{
				"v": {"name":"v","value":"file:.aiwg/rlm/in/value.json","type":"file_path"}}}`)
			w.write(".aiwg/rlm/in/value.json", `"inside"`)
			secret := filepath.Join(t.TempDir(), "value.json")
			a, b, err := prepare(w.dir, secret)
			if err = errors.Join(err, os.WriteFile(secret, []byte(`"`+outsideText+`"`), 0o600)); err != nil {
				t.Fatal(err)
			}
			stop := exchanging(t, a, b)
			defer stop()
			inside, runs := 0, number(t, "PERDURE_SWAPS", 20, 500)
			for i := 0; i < runs || inside == 0; i++ {
				dir := fmt.Sprintf("PERDURE_DIR=%s/store%d", w.dir, i)
				out, errs, _ := w.try("perdure import .aiwg; perdure var get v --scope global --json", dir)
				if strings.Contains(out+errs, outsideText) {
					t.Fatalf("the file outside was imported: %s%s", out, errs)
				}
				if strings.Contains(out, `"inside"`) {
					inside++
				}
				_ = os.RemoveAll(fmt.Sprintf("%s/store%d", w.dir, i))
			}
			t.Logf("%d of %d imports read the file inside", inside, runs)
		})
	}
}
