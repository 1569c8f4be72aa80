package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// maxMessage bounds one line of input.
const maxMessage = 8 << 20

// messages gives one message a call and io.EOF at the end.
type messages func() ([]byte, error)

// input is the JSON argument, which is one message however many lines it has,
// or standard input, which has one a line.
func input(cmd *cobra.Command, args []string) (messages, error) {
	if len(args) == 1 && args[0] != "-" {
		if strings.TrimSpace(args[0]) == "" {
			return nil, usagef("the message is empty: want one JSON object")
		}
		return single([]byte(args[0])), nil
	}
	if f, ok := cmd.InOrStdin().(*os.File); ok && len(args) == 0 && term.IsTerminal(int(f.Fd())) {
		return nil, usagef("no message: give it as an argument, or one a line on standard input (- to type them)")
	}
	return lines(cmd.InOrStdin()), nil
}

func single(message []byte) messages {
	given := false
	return func() ([]byte, error) {
		if given {
			return nil, io.EOF
		}
		given = true
		return message, nil
	}
}

func lines(in io.Reader) messages {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), maxMessage)
	return func() ([]byte, error) {
		switch {
		case s.Scan():
			return bytes.TrimSpace(s.Bytes()), nil
		case errors.Is(s.Err(), bufio.ErrTooLong):
			return nil, fmt.Errorf("larger than %s", size(maxMessage))
		case s.Err() != nil:
			return nil, s.Err()
		}
		return nil, io.EOF
	}
}
