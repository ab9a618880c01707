package notify

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
)

// Desktop shows notices on the desktop of the logged-in user with the program that the
// system has for that.
type Desktop struct{ program, args []string }

// NewDesktop finds the program. Without a program or a desktop the error is
// [ErrNoDesktop]. getenv reads the environment of the user.
func NewDesktop(getenv func(string) string) (*Desktop, error) {
	return desktopOf(runtime.GOOS, getenv, exec.LookPath)
}

func desktopOf(system string, getenv func(string) string, look func(string) (string, error)) (*Desktop, error) {
	var d Desktop
	switch system {
	case "darwin":
		d = Desktop{program: []string{"osascript", "-e", osaScript}, args: []string{VarTitle, VarText}}
	case "windows":
		d = Desktop{program: []string{"powershell", "-NoProfile", "-NonInteractive", "-Command", toast}}
	default:
		seen := false
		for _, name := range []string{"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"} {
			seen = seen || getenv(name) != ""
		}
		if !seen {
			return nil, fmt.Errorf("%w: no desktop session is running", ErrNoDesktop)
		}
		d = Desktop{program: []string{"notify-send", "--app-name=perdure", "--"}, args: []string{VarTitle, VarText}}
	}
	path, err := look(d.program[0])
	if err != nil {
		return nil, fmt.Errorf("%w: program %s not found", ErrNoDesktop, d.program[0])
	}
	d.program[0] = path
	return &d, nil
}

// osaScript shows its two arguments, and toast two environment variables, so that the text
// of a notice is never part of a script.
const (
	osaScript = `on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run`
	toast = `$ErrorActionPreference = 'Stop'
[void][Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$xml = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$lines = $xml.GetElementsByTagName('text')
[void]$lines.Item(0).AppendChild($xml.CreateTextNode($env:PERDURE_TITLE))
[void]$lines.Item(1).AppendChild($xml.CreateTextNode($env:PERDURE_TEXT))
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier('{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\WindowsPowerShell\v1.0\powershell.exe').Show([Windows.UI.Notifications.ToastNotification]::new($xml))`
)

// maxShown limits the text that desktops show, in bytes.
const maxShown = 400

// Send shows the notice.
func (d *Desktop) Send(ctx context.Context, n *Notice) error {
	f := fitted(n)
	values := map[string]string{VarTitle: f.Title, VarText: clip.Bytes(f.Text, maxShown)}
	args := slices.Clone(d.program[1:])
	for _, name := range d.args {
		args = append(args, values[name])
	}
	said := &end{}
	err := guard.Run(ctx, guard.Config{Path: d.program[0], Args: args, Stdout: said, Stderr: said,
		Env: slices.Concat(os.Environ(), []string{VarTitle + "=" + values[VarTitle], VarText + "=" + values[VarText]})})
	if err != nil {
		return fmt.Errorf("%s: %w: %s", d.program[0], err, said.text())
	}
	return nil
}
