// A group member on kafka-go or franz-go that says when it subscribes, closes and has closed: FAMILY BOOTSTRAP GROUP TOPIC REFRESH_MS.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

func say(what string) {
	fmt.Printf("%d\t%s\n", time.Now().UnixMicro(), what)
}

func waitForClose() {
	bufio.NewReader(os.Stdin).ReadString('\n')
	say("closing")
}

func segmentio(bootstrap, group, topic string, refresh time.Duration) {
	say("subscribed")
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, GroupID: group, Topic: topic, WatchPartitionChanges: true, PartitionWatchInterval: refresh,
		CommitInterval: 5 * time.Second,
	})
	go func() {
		for {
			if _, err := reader.ReadMessage(context.Background()); err != nil {
				return
			}
		}
	}()
	waitForClose()
	reader.Close()
	say("closed")
}

func franz(bootstrap, group, topic string, refresh time.Duration) {
	say("subscribed")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.MetadataMaxAge(refresh),
		kgo.MetadataMinAge(min(refresh, 2500*time.Millisecond)),
	)
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			if client.PollFetches(context.Background()).IsClientClosed() {
				return
			}
		}
	}()
	waitForClose()
	client.Close()
	say("closed")
}

func main() {
	milliseconds, err := strconv.Atoi(os.Args[5])
	if err != nil {
		panic(err)
	}
	families := map[string]func(string, string, string, time.Duration){"kafka-go": segmentio, "franz-go": franz}
	families[os.Args[1]](os.Args[2], os.Args[3], os.Args[4], time.Duration(milliseconds)*time.Millisecond)
}
