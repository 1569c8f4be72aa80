package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/server"
)

// helperVariable makes the test's own program a registry: an order in JSON.
const helperVariable = "WAYBILL_TEST_REGISTRY_HELPER"

type order struct {
	Brokers      []string
	Topic        string
	Capabilities broker.Capabilities
}

func TestMain(m *testing.M) {
	if text := os.Getenv(helperVariable); text != "" {
		if err := serveAlone(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serveAlone serves until its input ends, which it does when the test is gone.
func serveAlone(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := server.New(broker.Config{Brokers: o.Brokers}, server.Config{Topic: o.Topic, Capabilities: o.Capabilities, Compatibility: compat.None})
	go func() {
		if err := s.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	<-s.Ready()
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(ln) }()
	fmt.Println("http://" + ln.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return web.Close()
}

// process is a registry in a process of its own.
type process struct {
	*registry
	kill func()
}

func startProcess(t *testing.T, e *brokertest.Engine, topic string) *process {
	t.Helper()
	text, err := json.Marshal(order{e.Brokers, topic, e.Capabilities})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self) // it ends with its input, or is killed
	cmd.Env = append(os.Environ(), helperVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the registry's process said nothing: %v", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	p := &process{registry: &registry{T: t, url: strings.TrimSpace(line), http: &http.Client{Transport: transport}}}
	gone := false
	p.kill = func() {
		if gone {
			return
		}
		gone = true
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
		transport.CloseIdleConnections()
	}
	t.Cleanup(p.kill)
	return p
}

// try registers a text under a subject, and gives its id, 0 if nobody answers.
func (r *registry) try(ctx context.Context, subject, text string) (id int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/subjects/"+subject+"/versions", strings.NewReader(request(text)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	resp, err := r.http.Do(req)
	if err != nil {
		return 0, nil // it was killed
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil // it was killed
	}
	var answer struct {
		ID int `json:"id"`
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.ID == 0 {
		return 0, fmt.Errorf("%d %s", resp.StatusCode, body)
	}
	return answer.ID, nil
}
