// Real consumers of kafka-go or franz-go on command, as kgctl/simulate/against/client.py has those of Python's clients: the same
// commands, settings and lines. The one argument is the family. kafka-go's Reader calls nobody back: what it logs is told instead.
package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

var saying sync.Mutex

func say(name string, words ...string) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Printf("%d\t%s\t%s\n", time.Now().UnixMicro(), name, strings.Join(words, "\t"))
}

type settings map[string]string

func pairs(words []string, into settings) settings {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		into[key] = value
	}
	return into
}

func (s settings) number(key string, otherwise float64) float64 {
	if value, err := strconv.ParseFloat(s[key], 64); err == nil {
		return value
	}
	return otherwise
}

func ms(value float64) time.Duration { return time.Duration(value * float64(time.Millisecond)) }

// given calls with a duration that is set.
func (s settings) given(key string, use func(time.Duration)) {
	if s[key] != "" {
		use(ms(s.number(key, 0)))
	}
}

// draw returns one of a list's values.
func (s settings) draw(key string) time.Duration {
	values := strings.Split(s[key], ",")
	value, _ := strconv.ParseFloat(values[rand.Intn(len(values))], 64)
	return ms(value)
}

type record struct {
	topic             string
	partition, offset int64
	written           time.Time
}

// consumer is one that has subscribed.
type consumer interface {
	poll(timeout time.Duration, most int) []record
	commit() error
	close()
}

type member struct {
	name     string
	loop     settings
	stalled  atomic.Int64
	factor   atomic.Value
	closes   atomic.Bool
	consumer consumer
	lastTold string
}

func (m *member) tellGeneration(generation int, id string) {
	if told := fmt.Sprintf("%d\t%s", generation, id); told != m.lastTold {
		m.lastTold = told
		say(m.name, "generation", told)
	}
}

func (m *member) called(callback string, names []string) {
	sort.Strings(names)
	rest := m.loop.draw("callback." + callback + ".ms")
	if callback == "assigned" {
		time.Sleep(rest)
		say(m.name, callback, strings.Join(names, ","))
		return
	}
	say(m.name, callback, strings.Join(names, ","))
	time.Sleep(rest)
}

func (m *member) stalls() bool {
	left := time.Until(time.UnixMicro(m.stalled.Load()))
	if left <= 0 {
		return false
	}
	say(m.name, "stalls")
	time.Sleep(left)
	return true
}

func (m *member) run() {
	say(m.name, "subscribed")
	mode, most, rate := m.loop["commit.mode"], int(m.loop.number("max.poll.records", 500)), m.loop.number("records.per.second", 0)
	every, committed := ms(m.loop.number("commit.every.ms", 5000)), time.Now()
	commit := func() {
		committed = time.Now()
		if err := m.consumer.commit(); err != nil {
			say(m.name, "commit-failed", code(err))
		}
	}
	for !m.closes.Load() {
		records := m.consumer.poll(ms(m.loop.number("poll.timeout.ms", 100)), most)
		if len(records) > 0 {
			say(m.name, append([]string{"read"}, ranges(records)...)...)
			if mode == "before-batch" {
				commit()
			}
		}
		if !m.stalls() && (len(records) > 0 || m.loop["poll.pauses.always"] == "true") {
			rest := float64(m.loop.draw("poll.pauses.ms"))
			if rate > 0 {
				rest += float64(len(records)) / rate * float64(time.Second)
			}
			time.Sleep(time.Duration(rest * m.factor.Load().(float64)))
			m.stalls()
		}
		if len(records) > 0 && (mode == "after-batch" || mode == "every" && time.Since(committed) >= every) {
			commit()
		}
	}
	say(m.name, "closing")
	m.consumer.close()
	say(m.name, "closed")
}

func ranges(records []record) []string {
	found, order := map[string][4]int64{}, []string{}
	for _, each := range records {
		name, wait := fmt.Sprintf("%s-%d", each.topic, each.partition), max(time.Since(each.written).Milliseconds(), 0)
		seen, isKnown := found[name]
		if !isKnown {
			order, seen = append(order, name), [4]int64{each.offset, 0, wait, wait}
		}
		found[name] = [4]int64{seen[0], each.offset, min(seen[2], wait), max(seen[3], wait)}
	}
	texts := []string{}
	for _, name := range order {
		range_ := found[name]
		texts = append(texts, fmt.Sprintf("%s:%d-%d:%d-%d", name, range_[0], range_[1], range_[2], range_[3]))
	}
	return texts
}

// code makes ILLEGAL_GENERATION of "[22] Illegal Generation: ...".
func code(err error) string {
	text, _, _ := strings.Cut(err.Error(), ":")
	if _, after, isNumbered := strings.Cut(text, "] "); isNumbered {
		text = after
	}
	return strings.ToUpper(strings.ReplaceAll(text, " ", "_"))
}

type segmentio struct {
	reader *kafka.Reader
	read   []kafka.Message
}

var subscribedTo = regexp.MustCompile(`topic:(\S+) partition:(\d+)`)

func newSegmentio(m *member, topics string, all settings) consumer {
	balancers := map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
	config := kafka.ReaderConfig{
		Brokers: strings.Split(all["bootstrap.servers"], ","), GroupID: all["group.id"], GroupTopics: strings.Split(topics, ","),
		Dialer: &kafka.Dialer{ClientID: all["client.id"], Timeout: 10 * time.Second, DualStack: true},
	}
	for _, name := range strings.Split(all["partition.assignment.strategy"], ",") {
		config.GroupBalancers = append(config.GroupBalancers, balancers[name])
	}
	all.given("session.timeout.ms", func(value time.Duration) { config.SessionTimeout = value })
	all.given("heartbeat.interval.ms", func(value time.Duration) { config.HeartbeatInterval = value })
	all.given("metadata.max.age.ms", func(value time.Duration) {
		config.WatchPartitionChanges, config.PartitionWatchInterval = true, value
	})
	if all["commit.mode"] == "every" {
		all.given("commit.every.ms", func(value time.Duration) { config.CommitInterval = value })
		all["commit.mode"] = "after-batch" // each batch is handed over, the client commits at its interval
	}
	owned := []string{}
	config.Logger = kafka.LoggerFunc(func(format string, words ...interface{}) {
		switch {
		case strings.HasPrefix(format, "Joined group"):
			m.tellGeneration(int(words[2].(int32)), words[1].(string))
		case strings.HasPrefix(format, "subscribed to topics and partitions"):
			owned = []string{}
			for _, found := range subscribedTo.FindAllStringSubmatch(fmt.Sprintf("%+v", words[0]), -1) {
				owned = append(owned, found[1]+"-"+found[2])
			}
			m.called("assigned", owned)
		case strings.HasPrefix(format, "stopped heartbeat"):
			m.called("revoked", owned)
		}
	})
	return &segmentio{reader: kafka.NewReader(config)}
}

func (s *segmentio) poll(timeout time.Duration, most int) []record {
	found := []record{}
	s.read = s.read[:0]
	for len(found) < most {
		soon, cancel := context.WithTimeout(context.Background(), timeout)
		message, err := s.reader.FetchMessage(soon)
		cancel()
		if err != nil {
			break
		}
		timeout = time.Millisecond
		s.read = append(s.read, message)
		found = append(found, record{message.Topic, int64(message.Partition), message.Offset, message.Time})
	}
	return found
}

func (s *segmentio) commit() error {
	soon, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.reader.CommitMessages(soon, s.read...)
}

func (s *segmentio) close() { s.reader.Close() }

type franz struct {
	client *kgo.Client
	member *member
}

func newFranz(m *member, topics string, all settings) consumer {
	found := &franz{member: m}
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	own := []kgo.GroupBalancer{}
	for _, name := range strings.Split(all["partition.assignment.strategy"], ",") {
		own = append(own, balancers[name])
	}
	calls := func(callback string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
			id, generation := client.GroupMetadata()
			m.tellGeneration(int(generation), id)
			names := []string{}
			for topic, numbers := range partitions {
				for _, number := range numbers {
					names = append(names, fmt.Sprintf("%s-%d", topic, number))
				}
			}
			m.called(callback, names)
			if callback == "revoked" && all["enable.auto.commit"] != "false" {
				client.CommitUncommittedOffsets(ctx) // as the client does where nobody is called back
			}
		}
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(all["bootstrap.servers"], ",")...), kgo.ConsumerGroup(all["group.id"]),
		kgo.ConsumeTopics(strings.Split(topics, ",")...), kgo.ClientID(all["client.id"]), kgo.Balancers(own...),
		kgo.OnPartitionsAssigned(calls("assigned")), kgo.OnPartitionsRevoked(calls("revoked")), kgo.OnPartitionsLost(calls("lost")),
	}
	if all["enable.auto.commit"] == "false" {
		options = append(options, kgo.DisableAutoCommit())
	}
	if all["group.instance.id"] != "" {
		options = append(options, kgo.InstanceID(all["group.instance.id"]))
	}
	all.given("session.timeout.ms", func(value time.Duration) { options = append(options, kgo.SessionTimeout(value)) })
	all.given("heartbeat.interval.ms", func(value time.Duration) { options = append(options, kgo.HeartbeatInterval(value)) })
	all.given("metadata.max.age.ms", func(value time.Duration) {
		options = append(options, kgo.MetadataMaxAge(value), kgo.MetadataMinAge(min(value, 2500*time.Millisecond)))
	})
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	found.client = client
	return found
}

func (f *franz) poll(timeout time.Duration, most int) []record {
	soon, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	found := []record{}
	f.client.PollRecords(soon, most).EachRecord(func(each *kgo.Record) {
		found = append(found, record{each.Topic, int64(each.Partition), each.Offset, each.Timestamp})
	})
	return found
}

func (f *franz) commit() error { return f.client.CommitUncommittedOffsets(context.Background()) }

func (f *franz) close() { f.client.Close() }

func main() {
	families := map[string]func(*member, string, settings) consumer{"kafka-go": newSegmentio, "franz-go": newFranz}
	members, connection := map[string]*member{}, settings{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	say("client", "ready")
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		switch words[0] {
		case "connect":
			pairs(words[1:], connection)
		case "start":
			all := pairs(words[3:], settings{"bootstrap.servers": connection["bootstrap.servers"]})
			made := &member{name: words[1], loop: all}
			made.factor.Store(1.0)
			members[words[1]] = made
			go func() {
				made.consumer = families[os.Args[1]](made, words[2], all)
				made.run()
			}()
		case "close":
			members[words[1]].closes.Store(true)
		case "stall":
			length, _ := strconv.Atoi(words[2])
			members[words[1]].stalled.Store(time.Now().Add(time.Duration(length) * time.Millisecond).UnixMicro())
		case "slow":
			factor, _ := strconv.ParseFloat(words[2], 64)
			members[words[1]].factor.Store(factor)
		}
	}
}
