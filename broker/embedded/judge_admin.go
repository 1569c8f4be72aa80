package embedded

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	maxRequestTopics     = 1000
	maxRequestPartitions = 4096
	maxPartitions        = 20_000 // of all topics: each costs memory, and files once written to
)

// fault is why a topic is not created or changed, in the protocol's terms.
type fault struct {
	err  *kerr.Error
	text string
}

func (g *guard) judgeCreateTopics(f *frame, r *kmsg.CreateTopicsRequest) verdict {
	if len(r.Topics) > maxRequestTopics {
		return refuse("%d topics in one request", len(r.Topics))
	}
	faults := make([]*fault, len(r.Topics))
	sum, bad := 0, false
	for i := range r.Topics {
		n := max(int(r.Topics[i].NumPartitions), len(r.Topics[i].ReplicaAssignment), 0)
		sum += min(n, maxRequestPartitions+1)
		faults[i] = faultOfTopic(&r.Topics[i], n)
		bad = bad || faults[i] != nil
	}
	if !bad && sum <= maxRequestPartitions && g.roomFor(sum) {
		return verdict{pass: f.raw}
	}
	rest := &fault{kerr.PolicyViolation, "refused together with another topic of the same request"}
	if !bad {
		rest = &fault{kerr.PolicyViolation, fmt.Sprintf("too many partitions: %d in one request and %d in all are allowed", maxRequestPartitions, maxPartitions)}
	}
	resp := r.ResponseKind().(*kmsg.CreateTopicsResponse)
	for i, t := range r.Topics {
		fa := faults[i]
		if fa == nil {
			fa = rest
		}
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Topic, fa.err.Code, &fa.text
		resp.Topics = append(resp.Topics, rt)
	}
	return answer(resp, "topics not created: %s", firstFault(faults))
}

// roomFor counts partitions as they are asked for; retention counts again
// what is there.
func (g *guard) roomFor(n int) bool {
	if g.partitions.Load()+int64(n) > maxPartitions {
		return false
	}
	g.partitions.Add(int64(n))
	return true
}

func firstFault(faults []*fault) string {
	for _, f := range faults {
		if f != nil {
			return f.text
		}
	}
	return "too many partitions in one request"
}

func faultOfTopic(t *kmsg.CreateTopicsRequestTopic, partitions int) *fault {
	if !validTopicName(t.Topic) {
		return &fault{kerr.InvalidTopicException, fmt.Sprintf("%q is no topic name", clip(t.Topic))}
	}
	if partitions > maxTopicPartitions {
		return &fault{kerr.InvalidPartitions, fmt.Sprintf("%d partitions; the embedded broker allows %d", partitions, maxTopicPartitions)}
	}
	for _, ra := range t.ReplicaAssignment {
		if len(ra.Replicas) != 1 || ra.Replicas[0] != 0 {
			return &fault{kerr.InvalidReplicaAssignment, "there is one broker, 0"}
		}
	}
	for _, c := range t.Configs {
		if fa := faultOfConfig(c.Name, c.Value); fa != nil {
			return fa
		}
	}
	return nil
}

// validTopicName is Kafka's rule. Names become directories.
func validTopicName(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 249 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// limits are the settings the broker acts upon. It reads a value that is no
// number as zero, which for retention means: delete everything.
var limits = map[string]struct{ min, max int64 }{
	"retention.ms":        {-1, 1 << 62},
	"retention.bytes":     {-1, 1 << 62},
	"segment.bytes":       {1 << 20, 1 << 30},
	"segment.ms":          {1000, 1 << 62},
	"max.message.bytes":   {0, maxMessageCeiling},
	"delete.retention.ms": {0, 1 << 62},
	"min.insync.replicas": {1, 1},
}

func faultOfConfig(name string, value *string) *fault {
	if strings.HasPrefix(name, "kfake.") {
		return &fault{kerr.InvalidConfig, name + " is not a topic setting"}
	}
	if value == nil {
		return nil // the default
	}
	switch name {
	case "cleanup.policy":
		if *value != "delete" {
			return &fault{kerr.PolicyViolation, "the embedded broker does not compact: use cleanup.policy=delete with retention.ms=-1"}
		}
	case "message.timestamp.type":
		if *value != "CreateTime" {
			return &fault{kerr.PolicyViolation, "the embedded broker keeps the producer's time: use message.timestamp.type=CreateTime"}
		}
	}
	l, ok := limits[name]
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(*value, 10, 64)
	if err != nil || n < l.min || n > l.max {
		return &fault{kerr.InvalidConfig, fmt.Sprintf("%s=%s: want %d to %d", name, clip(*value), l.min, l.max)}
	}
	return nil
}

func (g *guard) judgeCreatePartitions(f *frame, r *kmsg.CreatePartitionsRequest) verdict {
	bad := len(r.Topics) > maxRequestTopics
	sum := 0
	for _, t := range r.Topics {
		bad = bad || t.Count > maxTopicPartitions
		sum += int(max(t.Count, 0))
	}
	if !bad && g.roomFor(sum) {
		return verdict{pass: f.raw}
	}
	text := fmt.Sprintf("the embedded broker allows %d partitions, and %d in all", maxTopicPartitions, maxPartitions)
	resp := r.ResponseKind().(*kmsg.CreatePartitionsResponse)
	for _, t := range r.Topics {
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Topic, kerr.InvalidPartitions.Code, &text
		resp.Topics = append(resp.Topics, rt)
	}
	return answer(resp, "partitions not created: %s", text)
}

// Settings of the broker itself are the program's, not a client's: an
// interval of zero among them ends the process, at every start.
func judgeAlterConfigs(f *frame, r *kmsg.IncrementalAlterConfigsRequest) verdict {
	faults := make([]*fault, len(r.Resources))
	bad := false
	for i := range r.Resources {
		faults[i] = faultOfAlter(&r.Resources[i])
		bad = bad || faults[i] != nil
	}
	if !bad {
		return verdict{pass: f.raw}
	}
	resp := r.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	for i, res := range r.Resources {
		fa := faults[i]
		if fa == nil {
			fa = &fault{kerr.PolicyViolation, "refused together with another resource of the same request"}
		}
		rr := kmsg.NewIncrementalAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = res.ResourceType, res.ResourceName
		rr.ErrorCode, rr.ErrorMessage = fa.err.Code, &fa.text
		resp.Resources = append(resp.Resources, rr)
	}
	return answer(resp, "settings not changed: %s", firstFault(faults))
}

func faultOfAlter(res *kmsg.IncrementalAlterConfigsRequestResource) *fault {
	if res.ResourceType != kmsg.ConfigResourceTypeTopic {
		return &fault{kerr.PolicyViolation, "only topics can be altered on the embedded broker"}
	}
	for _, c := range res.Configs {
		switch c.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			if fa := faultOfConfig(c.Name, c.Value); fa != nil {
				return fa
			}
		case kmsg.IncrementalAlterConfigOpDelete:
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			return &fault{kerr.InvalidConfig, "settings can be set and deleted only"}
		default:
			return &fault{kerr.InvalidConfig, "unknown operation"}
		}
	}
	return nil
}
