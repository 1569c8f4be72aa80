package embedded

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	minFrame     = 8       // key, version, correlation id
	maxSmall     = 1 << 20 // of every request but Produce
	maxClientID  = 1024
	frameQuantum = 256 << 10 // memory is taken as bytes arrive, not as announced
)

// frame is one request without its length prefix.
type frame struct {
	key, version int16
	correlation  int32
	raw          []byte
	body         []byte // the part of raw behind the header
}

// parseFrame reads the header and nothing more.
func parseFrame(raw []byte) (frame, error) {
	if len(raw) < minFrame {
		return frame{}, fmt.Errorf("%d bytes are no request", len(raw))
	}
	f := frame{
		key:         int16(binary.BigEndian.Uint16(raw)),     // #nosec G115 -- as it is on the wire
		version:     int16(binary.BigEndian.Uint16(raw[2:])), // #nosec G115
		correlation: int32(binary.BigEndian.Uint32(raw[4:])), // #nosec G115
		raw:         raw,
	}
	s, ok := served[f.key]
	if !ok {
		return f, fmt.Errorf("request %d (%s) is not served", f.key, kmsg.NameForKey(f.key))
	}
	// A client opens with the newest ApiVersions it knows and expects to be
	// told ours.
	if f.key == int16(kmsg.ApiVersions) && f.version > s.max {
		return f, nil
	}
	if f.version < s.min || f.version > s.max {
		return f, fmt.Errorf("%s version %d is not served (%d to %d are)", kmsg.NameForKey(f.key), f.version, s.min, s.max)
	}
	return f, f.skipHeader()
}

func (f *frame) skipHeader() error {
	r := kbin.Reader{Src: f.raw[minFrame:]}
	id := r.NullableString()
	if f.request().IsFlexible() {
		kmsg.SkipTags(&r)
	}
	if !r.Ok() || (id != nil && len(*id) > maxClientID) {
		return fmt.Errorf("%s: the header does not parse", kmsg.NameForKey(f.key))
	}
	f.body = r.Src
	return nil
}

// request is an empty request of the frame's key and version. Both have been
// checked, so there is one.
func (f *frame) request() kmsg.Request {
	r := kmsg.RequestForKey(f.key)
	r.SetVersion(f.version)
	return r
}

// parse reads the body.
func (f *frame) parse() (req kmsg.Request, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: the body does not parse: %v", kmsg.NameForKey(f.key), p)
		}
	}()
	req = f.request()
	if err := req.ReadFrom(f.body); err != nil {
		return nil, fmt.Errorf("%s: the body does not parse: %w", kmsg.NameForKey(f.key), err)
	}
	return req, nil
}

// tooNew turns an ApiVersions request of a version nobody here knows into one
// the broker can read while keeping the version, so that it answers, as the
// protocol asks, in the oldest form with the versions it has.
func (f *frame) tooNew() []byte {
	out := append([]byte(nil), f.raw[:minFrame]...)
	out = kbin.AppendNullableString(out, nil)
	out = append(out, 0) // no tags in the header
	req := kmsg.NewPtrApiVersionsRequest()
	req.SetVersion(f.version)
	req.ClientSoftwareName, req.ClientSoftwareVersion = "unknown", "0"
	return req.AppendTo(out)
}

// response puts an answer of our own on the wire.
func (f *frame) response(resp kmsg.Response) []byte {
	resp.SetVersion(f.version)
	out := make([]byte, minFrame, 256)
	if resp.IsFlexible() && f.key != int16(kmsg.ApiVersions) {
		out = append(out, 0)
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))        // #nosec G115 -- our own answers are small
	binary.BigEndian.PutUint32(out[4:], uint32(f.correlation)) // #nosec G115
	return out
}
