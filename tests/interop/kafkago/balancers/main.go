// kafka-go's own group balancers: a group a line on standard input, their answers a line on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"

	"github.com/segmentio/kafka-go"
)

type group struct {
	Balancer string              `json:"balancer"`
	Members  []member            `json:"members"`
	Racks    map[string][]string `json:"racks"`
	Repeat   int                 `json:"repeat"`
}

type member struct {
	ID     string   `json:"id"`
	Topics []string `json:"topics"`
	Rack   string   `json:"rack"`
}

var balancers = map[string]kafka.GroupBalancer{
	"kafka-go:range":      kafka.RangeGroupBalancer{},
	"kafka-go:roundrobin": kafka.RoundRobinGroupBalancer{},
	"rack-affinity":       kafka.RackAffinityGroupBalancer{},
}

// answers asks so often, since the balancer goes through maps: topic -> the different answers, each member -> partitions.
func (g group) answers() map[string][]map[string][]int {
	members := []kafka.GroupMember{}
	for _, each := range g.Members {
		members = append(members, kafka.GroupMember{ID: each.ID, Topics: each.Topics, UserData: []byte(each.Rack)})
	}
	partitions := []kafka.Partition{}
	for topic, racks := range g.Racks {
		for id, rack := range racks {
			partitions = append(partitions, kafka.Partition{Topic: topic, ID: id, Leader: kafka.Broker{Rack: rack}})
		}
	}
	seen, found := map[string]bool{}, map[string][]map[string][]int{}
	for range g.Repeat {
		for topic, byMember := range turned(balancers[g.Balancer].AssignGroups(members, partitions), g.Racks) {
			text, _ := json.Marshal(byMember)
			if key := topic + "\x00" + string(text); !seen[key] {
				seen[key] = true
				found[topic] = append(found[topic], byMember)
			}
		}
	}
	return found
}

// turned has the topic first, without those that get nothing of it.
func turned(assignments kafka.GroupMemberAssignments, topics map[string][]string) map[string]map[string][]int {
	byTopic := map[string]map[string][]int{}
	for topic := range topics {
		byTopic[topic] = map[string][]int{}
	}
	for member, assigned := range assignments {
		for topic, partitions := range assigned {
			if len(partitions) > 0 {
				sorted := slices.Clone(partitions)
				slices.Sort(sorted)
				byTopic[topic][member] = sorted
			}
		}
	}
	return byTopic
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked group
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(asked.answers()); err != nil {
			panic(err)
		}
	}
}
