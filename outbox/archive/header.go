package archive

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
)

// Keys of a file's header.
const (
	keyFormat  = "waybill.format"
	keyLabel   = "waybill.label"
	keySummary = "waybill.summary"
	keySchema  = "waybill.schema." // and the fingerprint, 16 hexadecimal digits

	format = "1"
)

// Digest is the SHA-256 of a file's header, less the summary, and of its events
// as Avro encodes them, one behind the other.
type Digest [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText makes it hexadecimal in JSON too.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// summarySize is the length of a summary's text, always: it is put in place of
// the blank when the events are written, and nothing around it may move.
const summarySize = 20 + 1 + 2*32 + 1 + 36 + 1 + 36

// blank stands where the summary will be. It is found by being like nothing
// else in the header.
func blank() string {
	return ("unfinished " + rand.Text() + strings.Repeat("-", summarySize))[:summarySize]
}

func (f *File) summary() string {
	return fmt.Sprintf("%020d %s %s %s", f.Events, f.Digest, f.First, f.Last)
}

var errUnfinished = errors.New("it was never finished")

func (f *File) setSummary(text string) (err error) {
	if strings.HasPrefix(text, "unfinished") {
		return errUnfinished
	}
	part := strings.Split(text, " ")
	if len(text) != summarySize || len(part) != 4 {
		return errors.New("its header has no summary")
	}
	if f.Events, err = strconv.ParseInt(part[0], 10, 64); err != nil || f.Events <= 0 {
		return fmt.Errorf("its header counts %.40q events", part[0])
	}
	digest, err := hex.DecodeString(part[1])
	if err != nil || copy(f.Digest[:], digest) != len(f.Digest) {
		return errors.New("its header's digest cannot be read")
	}
	if f.First, err = uuid.Parse(part[2]); err != nil {
		return errors.New("its header's first id cannot be read")
	}
	if f.Last, err = uuid.Parse(part[3]); err != nil {
		return errors.New("its header's last id cannot be read")
	}
	return nil
}

// metadata is the header of a file that is begun.
func metadata(label, summary string, schemas map[int64]Schema) map[string][]byte {
	m := map[string][]byte{keyFormat: []byte(format), keyLabel: []byte(label), keySummary: []byte(summary)}
	for print, s := range schemas {
		m[fmt.Sprintf("%s%016x", keySchema, uint64(print))] = []byte(s.Subject + "\n" + s.Text)
	}
	return m
}

// setMetadata reads the header of a file. A schema whose text is not the one
// its fingerprint names is damage.
func (f *File) setMetadata(m map[string][]byte) error {
	switch v, ok := m[keyFormat]; {
	case !ok:
		return errors.New("it is no archive of an outbox")
	case string(v) != format:
		return fmt.Errorf("it has format %.20q and this program reads %s: use a newer one", v, format)
	}
	if err := f.setSummary(string(m[keySummary])); err != nil {
		return err
	}
	f.Label = string(m[keyLabel])
	f.Schemas = map[int64]Schema{}
	for key, v := range m {
		name, ok := strings.CutPrefix(key, keySchema)
		if !ok {
			continue
		}
		print, err := strconv.ParseUint(name, 16, 64)
		subject, text, found := strings.Cut(string(v), "\n")
		if err != nil || !found || event.Fingerprint(text) != int64(print) {
			return fmt.Errorf("its header's schema %.40q is damaged", name)
		}
		f.Schemas[int64(print)] = Schema{Subject: subject, Text: text}
	}
	return nil
}
