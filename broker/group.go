package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// GroupInfo is a consumer group as its coordinator has it.
type GroupInfo struct {
	Name    string   `json:"name"`
	Type    string   `json:"type,omitempty"` // classic or consumer
	State   string   `json:"state"`
	Members []Member `json:"members"`
	Topics  []string `json:"topics"` // assigned to members or committed to
	Error   string   `json:"error,omitempty"`
}

// Member is one consumer of a group.
type Member struct {
	ID       string             `json:"id"`
	ClientID string             `json:"client_id"`
	Host     string             `json:"host"`
	Assigned map[string][]int32 `json:"assigned"`
}

// ListGroups describes all consumer groups, by name. Share groups have no
// partitions of their own and are left out.
func ListGroups(ctx context.Context, cl *kgo.Client) ([]GroupInfo, error) {
	adm := kadm.NewClient(cl)
	listed, err := adm.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	out := make([]GroupInfo, 0, len(listed))
	for _, l := range listed.Sorted() {
		if l.GroupType == "share" {
			continue
		}
		out = append(out, describe(ctx, adm, l))
	}
	return out, nil
}

func describe(ctx context.Context, adm *kadm.Client, l kadm.ListedGroup) GroupInfo {
	info := GroupInfo{Name: l.Group, Type: l.GroupType, State: l.State}
	members, err := membersOf(ctx, adm, l)
	if err != nil {
		info.Error = err.Error()
	}
	info.Members = members
	topics := make(map[string]bool)
	for _, m := range members {
		for t := range m.Assigned {
			topics[t] = true
		}
	}
	commits, err := adm.FetchOffsets(ctx, l.Group)
	if err != nil && info.Error == "" {
		info.Error = err.Error()
	}
	for t := range commits {
		topics[t] = true
	}
	info.Topics = slices.Sorted(maps.Keys(topics))
	return info
}

// Groups of the two protocols answer to different requests.
func membersOf(ctx context.Context, adm *kadm.Client, l kadm.ListedGroup) ([]Member, error) {
	if l.GroupType == "consumer" {
		return nextGenerationMembers(ctx, adm, l.Group)
	}
	described, err := adm.DescribeGroups(ctx, l.Group)
	if err != nil {
		return nil, fmt.Errorf("describe group %s: %w", l.Group, err)
	}
	g, err := described.On(l.Group, nil)
	if err == nil {
		err = g.Err
	}
	if err != nil {
		return nil, fmt.Errorf("describe group %s: %w", l.Group, err)
	}
	out := make([]Member, 0, len(g.Members))
	for _, m := range g.Members {
		member := Member{ID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost, Assigned: map[string][]int32{}}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				member.Assigned[t.Topic] = t.Partitions
			}
		}
		out = append(out, member)
	}
	return out, nil
}

func nextGenerationMembers(ctx context.Context, adm *kadm.Client, group string) ([]Member, error) {
	described, err := adm.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("describe group %s: %w", group, err)
	}
	g, ok := described[group]
	if !ok {
		return nil, fmt.Errorf("describe group %s: no answer", group)
	}
	if g.Err != nil {
		return nil, fmt.Errorf("describe group %s: %w", group, g.Err)
	}
	out := make([]Member, 0, len(g.Members))
	for _, m := range g.Members {
		member := Member{ID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost, Assigned: map[string][]int32{}}
		for t, ps := range m.Assignment {
			member.Assigned[t] = slices.Sorted(maps.Keys(ps))
		}
		out = append(out, member)
	}
	return out, nil
}
