package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/webhook/sign"
)

// envWebhookSecret is what listen verifies with; not a flag, which would be in
// the list of processes.
const envWebhookSecret = "WAYBILL_WEBHOOK_SECRET" //nolint:gosec // its name

const maxHeard = 1 << 20 // bytes of a body

func newWebhookListen() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Be a receiver: print webhooks as they come, and whether their signature holds",
		Long: `Be a receiver on this machine, for trying things: prints webhooks as they come,
and whether their signature holds, if the secret is in ` + envWebhookSecret + `.

  waybill webhook add http://127.0.0.1:9009/ --tenant T --allow 127.0.0.0/8
  ` + envWebhookSecret + `=whsec_… waybill webhook listen`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	listen := f.String("listen", "127.0.0.1:9009", "address to listen on")
	status := f.Int("answer", http.StatusNoContent, "status to answer with: 500 shows retries, 410 has the endpoint disabled")
	count := f.Int("count", 0, "stop after so many; 0: do not stop")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *status < 200 || *status > 599 {
			return usagef("--answer %d: want 200 to 599", *status)
		}
		e := &ear{out: cmd.OutOrStdout(), status: *status, left: *count, json: *asJSON, done: make(chan struct{})}
		if secret := os.Getenv(envWebhookSecret); secret != "" {
			var err error
			if e.verifier, err = sign.NewVerifier(secret); err != nil {
				return usagef("%s: %w", envWebhookSecret, err)
			}
		}
		var lc net.ListenConfig
		l, err := lc.Listen(cmd.Context(), "tcp", *listen)
		if err != nil {
			return fmt.Errorf("listen on %s: %w (name another with --listen)", *listen, err)
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "listening on http://%s/\n", l.Addr())
		return e.run(cmd.Context(), l)
	}
	return cmd
}

// ear prints what it hears.
type ear struct {
	out      io.Writer
	verifier *sign.Verifier
	status   int
	json     bool
	mu       sync.Mutex
	left     int
	done     chan struct{}
}

func (e *ear) run(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: e, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case <-ctx.Done():
	case <-e.done:
	case err := <-failed:
		return err
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return srv.Shutdown(stopping)
}

// heard is a webhook as it is printed.
type heard struct {
	At       time.Time `json:"at"`
	ID       string    `json:"id"`
	Verified *bool     `json:"verified"` // nil: there is no secret to do it with
	Body     string    `json:"body"`
}

// ServeHTTP implements http.Handler.
func (e *ear) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHeard))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	h := heard{At: time.Now(), ID: r.Header.Get(sign.HeaderID), Body: string(body)}
	says := "not verified"
	if e.verifier != nil {
		err := e.verifier.Verify(r.Header, body)
		ok := err == nil
		h.Verified = &ok
		if says = "verified"; !ok {
			says = "REFUSED: " + err.Error()
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	if h.Verified == nil || *h.Verified {
		w.WriteHeader(e.status)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.json {
		_ = printJSON(e.out, h) // nobody to tell
	} else {
		_, _ = fmt.Fprintf(e.out, "%s  %s  %s\n%s\n", h.At.Format(time.TimeOnly), oneLine(h.ID), says, oneLine(h.Body))
	}
	if e.left--; e.left == 0 {
		close(e.done)
	}
}
