package embedded

import (
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// span is the versions of one request that are served.
type span struct{ min, max int16 }

// served is every request the broker answers. What clients of plain records
// and groups do not need is left out, and so is what does not survive a kill
// (transactions, share groups, the server-side consumer protocol) or could
// undo a promise (deleting records up to the end resets offsets after a kill):
// each further request is one more way in.
//
// Produce ends before topics are named by id: two ids that no longer exist in
// one request, as after deleting two topics, end the broker's loop.
var served = map[int16]span{
	int16(kmsg.Produce):                 {3, 12},
	int16(kmsg.Fetch):                   {4, 18},
	int16(kmsg.ListOffsets):             {0, 10},
	int16(kmsg.Metadata):                {0, 13},
	int16(kmsg.OffsetCommit):            {0, 10},
	int16(kmsg.OffsetFetch):             {0, 10},
	int16(kmsg.FindCoordinator):         {0, 6},
	int16(kmsg.JoinGroup):               {0, 9},
	int16(kmsg.Heartbeat):               {0, 4},
	int16(kmsg.LeaveGroup):              {0, 5},
	int16(kmsg.SyncGroup):               {0, 5},
	int16(kmsg.DescribeGroups):          {0, 6},
	int16(kmsg.ListGroups):              {0, 5},
	int16(kmsg.ApiVersions):             {0, 4},
	int16(kmsg.CreateTopics):            {0, 7},
	int16(kmsg.DeleteTopics):            {0, 6},
	int16(kmsg.InitProducerID):          {0, 5},
	int16(kmsg.OffsetForLeaderEpoch):    {3, 4},
	int16(kmsg.DescribeConfigs):         {0, 4},
	int16(kmsg.DescribeLogDirs):         {0, 4},
	int16(kmsg.CreatePartitions):        {0, 3},
	int16(kmsg.DeleteGroups):            {0, 2},
	int16(kmsg.IncrementalAlterConfigs): {0, 1},
	int16(kmsg.OffsetDelete):            {0, 0},
	int16(kmsg.DescribeCluster):         {0, 2},
	int16(kmsg.DescribeTopicPartitions): {0, 0},
}

// versions makes the broker announce what is served and nothing else.
func versions() *kversion.Versions {
	var vs kversion.Versions
	for key, s := range served {
		vs.SetMaxKeyVersion(key, s.max)
	}
	return &vs
}
