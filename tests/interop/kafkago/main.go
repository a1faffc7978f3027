// A group member on kafka-go's ConsumerGroup. Talks as tests/interop/members/wire_talk.py says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

type settings struct {
	Bootstrap string `json:"bootstrap"`
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	ClientID  string `json:"client_id"`
	Assignor  string `json:"assignor"`
	SessionMs int    `json:"session_timeout_ms"`
}

type command struct {
	Do         string `json:"do"`
	Count      int    `json:"count"`
	Partitions int    `json:"partitions"`
}

var (
	stdout    sync.Mutex
	balancers = map[string]kafka.GroupBalancer{
		"range":      kafka.RangeGroupBalancer{},
		"roundrobin": kafka.RoundRobinGroupBalancer{},
	}
)

func emit(event string, values map[string]any) {
	stdout.Lock()
	defer stdout.Unlock()
	line := map[string]any{"event": event}
	for name, value := range values {
		line[name] = value
	}
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

func check(err error) {
	if err != nil {
		emit("error", map[string]any{"text": err.Error()})
		os.Exit(1)
	}
}

// member has the current generation, and what was read in it.
type member struct {
	given      settings
	brokers    []string
	mutex      sync.Mutex
	generation *kafka.Generation
	next       map[int]int64
}

func (m *member) begin(generation *kafka.Generation) {
	m.mutex.Lock()
	m.generation, m.next = generation, map[int]int64{}
	m.mutex.Unlock()
	partitions := [][2]any{}
	assigned := generation.Assignments[m.given.Topic]
	sort.Slice(assigned, func(a, b int) bool { return assigned[a].ID < assigned[b].ID })
	for _, each := range assigned {
		partitions = append(partitions, [2]any{m.given.Topic, each.ID})
	}
	emit("owned", map[string]any{"partitions": partitions})
	for _, each := range assigned {
		generation.Start(func(ctx context.Context) { m.read(ctx, each.ID, each.Offset) })
	}
}

func (m *member) read(ctx context.Context, partition int, offset int64) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: m.brokers, Topic: m.given.Topic, Partition: partition, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 200 * time.Millisecond,
	})
	defer reader.Close()
	check(reader.SetOffset(offset))
	for {
		message, err := reader.ReadMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		m.mutex.Lock()
		m.next[partition] = message.Offset + 1
		m.mutex.Unlock()
		emit("record", map[string]any{"partition": partition, "offset": message.Offset})
	}
}

func (m *member) commit() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	offsets := map[int]int64{}
	for partition, offset := range m.next {
		offsets[partition] = offset
	}
	if m.generation == nil {
		emit("refused", map[string]any{"text": "no generation yet"})
	} else if err := m.generation.CommitOffsets(map[string]map[int]int64{m.given.Topic: offsets}); err != nil {
		emit("refused", map[string]any{"text": err.Error()})
	} else {
		emit("committed", nil)
	}
}

func (m *member) produce(count, partitions int) {
	for partition := 0; partition < partitions; partition++ {
		messages := []kafka.Message{}
		for number := partition; number < count; number += partitions {
			messages = append(messages, kafka.Message{Value: []byte("x")})
		}
		conn, err := kafka.DialLeader(context.Background(), "tcp", m.brokers[0], m.given.Topic, partition)
		check(err)
		_, err = conn.WriteMessages(messages...)
		check(err)
		conn.Close()
	}
	emit("produced", map[string]any{"left": 0})
}

func (m *member) follow(group *kafka.ConsumerGroup) {
	for {
		generation, err := group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err == nil {
			m.begin(generation)
		}
	}
}

func main() {
	m := &member{}
	check(json.Unmarshal([]byte(os.Args[1]), &m.given))
	m.brokers = strings.Split(m.given.Bootstrap, ",")
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                     m.given.Group,
		Brokers:                m.brokers,
		Topics:                 []string{m.given.Topic},
		Dialer:                 &kafka.Dialer{ClientID: m.given.ClientID, Timeout: 10 * time.Second, DualStack: true},
		GroupBalancers:         []kafka.GroupBalancer{balancers[m.given.Assignor]},
		HeartbeatInterval:      300 * time.Millisecond,
		SessionTimeout:         time.Duration(m.given.SessionMs) * time.Millisecond,
		JoinGroupBackoff:       200 * time.Millisecond,
		PartitionWatchInterval: time.Second,
		WatchPartitionChanges:  true,
		Timeout:                30 * time.Second,
	})
	check(err)
	go m.follow(group)
	lines := bufio.NewScanner(os.Stdin)
	for told := (command{}); told.Do != "leave" && lines.Scan(); {
		told = command{}
		check(json.Unmarshal(lines.Bytes(), &told))
		switch told.Do {
		case "produce":
			m.produce(told.Count, told.Partitions)
		case "commit":
			m.commit()
		}
	}
	check(group.Close())
	emit("left", nil)
}
