package push_test

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/waybillhq/waybill/push"
)

func TestClientModule(t *testing.T) {
	if !bytes.Contains(push.ClientJS, []byte("export async function subscribe")) {
		t.Fatal("the module is not embedded")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not on the path")
	}
	out, err := exec.CommandContext(t.Context(), node, "--test", "client/").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
