package embedded

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	maxProduceTopics     = 10_000
	maxProducePartitions = 50_000
)

var errProduce = errors.New("Produce: the body does not parse") //nolint:staticcheck // the request's name

// judgeProduce walks the request without building it: this is the path every
// record takes.
func (g *guard) judgeProduce(f *frame) verdict {
	w := produceWalk{r: kbin.Reader{Src: f.body}, version: f.version, batch: -1}
	if err := w.walk(g.judgeBatch); err != nil {
		var bad *badBatch
		if !errors.As(err, &bad) {
			return refuse("%v", err)
		}
		return answerProduce(f, bad, w.batch)
	}
	if !g.disk.admits(len(f.raw)) {
		return answerFull(f)
	}
	return verdict{pass: f.raw, silent: w.acks == 0}
}

// produceWalk goes over a produce request's batches in place.
type produceWalk struct {
	r       kbin.Reader
	version int16
	acks    int16
	batch   int // number of the batch it stands at
}

func (w *produceWalk) flexible() bool { return w.version >= 9 }

func (w *produceWalk) walk(batch func([]byte) error) error {
	if w.flexible() {
		w.r.CompactNullableString()
	} else {
		w.r.NullableString()
	}
	w.acks = w.r.Int16()
	w.r.Int32() // timeout
	topics := w.arrayLen()
	if !w.r.Ok() || topics > maxProduceTopics {
		return errProduce
	}
	partitions := 0
	for range topics {
		n, err := w.topic(batch)
		if err != nil {
			return err
		}
		if partitions += n; partitions > maxProducePartitions {
			return errProduce
		}
	}
	w.tags()
	if !w.r.Ok() {
		return errProduce
	}
	return nil
}

func (w *produceWalk) topic(batch func([]byte) error) (int, error) {
	if w.flexible() {
		w.r.Span(int(int32(w.r.Uvarint())) - 1) // #nosec G115 -- a negative span is an error
	} else {
		w.r.Span(int(w.r.Int16()))
	}
	n := int(w.arrayLen())
	for range n {
		w.r.Int32() // partition
		records := w.records()
		w.tags()
		if !w.r.Ok() {
			return 0, errProduce
		}
		w.batch++
		if err := batch(records); err != nil {
			return 0, err
		}
	}
	w.tags()
	if !w.r.Ok() {
		return 0, errProduce
	}
	return n, nil
}

func (w *produceWalk) arrayLen() int32 {
	if w.flexible() {
		return w.r.CompactArrayLen()
	}
	return w.r.ArrayLen()
}

func (w *produceWalk) records() []byte {
	var n int
	if w.flexible() {
		n = int(int32(w.r.Uvarint())) - 1 // #nosec G115
	} else {
		n = int(w.r.Int32())
	}
	if n == -1 {
		return nil
	}
	return w.r.Span(n)
}

func (w *produceWalk) tags() {
	if w.flexible() {
		kmsg.SkipTags(&w.r)
	}
}

// badBatch says why a batch is not taken, in the protocol's terms.
type badBatch struct {
	code *kerr.Error
	text string
}

func (b *badBatch) Error() string { return b.text }

// answerFull makes producers wait and try again.
func answerFull(f *frame) verdict {
	req, err := f.parse()
	if err != nil {
		return refuse("%v", err)
	}
	r := req.(*kmsg.ProduceRequest)
	if r.Acks == 0 {
		return refuse("the disk is full")
	}
	resp := refusedProduce(r, func() (*kerr.Error, string) {
		return kerr.KafkaStorageError, "the disk is full"
	})
	return answer(resp, "Produce: less than %d MiB are free on the log's disk", reserve>>20)
}

func refusedProduce(r *kmsg.ProduceRequest, why func() (*kerr.Error, string)) *kmsg.ProduceResponse {
	resp := r.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range r.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			err, text := why()
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.ErrorMessage = p.Partition, err.Code, &text
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// answerProduce tells the producer which batch is bad. The others of the same
// request get an error that it retries: they were not written.
func answerProduce(f *frame, bad *badBatch, at int) verdict {
	req, err := f.parse()
	if err != nil {
		return refuse("%v", err)
	}
	r := req.(*kmsg.ProduceRequest)
	if r.Acks == 0 {
		return refuse("Produce without acknowledgement: %s", bad.text)
	}
	n := -1
	resp := refusedProduce(r, func() (*kerr.Error, string) {
		if n++; n == at {
			return bad.code, bad.text
		}
		return kerr.NotLeaderForPartition, "refused together with another batch of the same request"
	})
	return answer(resp, "Produce: %s", bad.text)
}
