package perdure

import (
	"fmt"
	"slices"
	"strings"
)

// Placement names a host, a workspace folder and tags. That of a tree
// ([TreeSpec].Placement) is a requirement on the process that claims the tree's
// tasks; that of a store ([Config].Placement) describes this process.
type Placement struct {
	// Host is the name of a machine.
	Host string `json:"host,omitempty"`
	// Workspace is the absolute path of the folder that the tree's tasks change.
	Workspace string `json:"workspace,omitempty"`
	// Tags are capabilities, such as "gpu".
	Tags []string `json:"tags,omitempty"`
}

// Satisfies reports whether a process with placement p may claim tasks of a tree
// that requires the given placement: the host is the same, every required tag is
// among those of p, and the workspace is the same unless p names none. Fields
// that required leaves empty are not compared.
func (p *Placement) Satisfies(required *Placement) bool { return p.lacks(required) == "" }

// lacks describes the first requirement that p does not meet; empty if none.
func (p *Placement) lacks(required *Placement) string {
	if required.Host != "" && required.Host != p.Host {
		return fmt.Sprintf("host %q", required.Host)
	}
	if required.Workspace != "" && p.Workspace != "" && required.Workspace != p.Workspace {
		return fmt.Sprintf("workspace %q", required.Workspace)
	}
	for _, tag := range required.Tags {
		if !slices.Contains(p.Tags, tag) {
			return fmt.Sprintf("tag %q", tag)
		}
	}
	return ""
}

// maxPlacementBytes bounds the host, the tags together, and the workspace.
const maxPlacementBytes = 4096

func (p *Placement) validate(op string) error {
	for name, text := range map[string]string{
		"host": p.Host, "workspace": p.Workspace, "tags": strings.Join(p.Tags, " "),
	} {
		if len(text) > maxPlacementBytes || !storable(text) {
			return invalidf(op, "placement: %s is longer than %d bytes or not UTF-8 text", name, maxPlacementBytes)
		}
	}
	if slices.Contains(p.Tags, "") {
		return invalidf(op, "placement: a tag is empty")
	}
	return nil
}
