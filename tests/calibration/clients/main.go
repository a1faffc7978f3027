// A group member on kafka-go or franz-go that says when it subscribes, closes and has closed: FAMILY BOOTSTRAP GROUP TOPIC CLIENT_ID REFRESH_MS LIMIT_MS.
// A number on stdin has it poll nothing for so many milliseconds, any other line closes it; neither client has a limit for that.
package main

import (
	"bufio"
	"context"
	"errors"
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

var stalls = make(chan time.Duration, 1)

func waitForClose() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		milliseconds, err := strconv.Atoi(lines.Text())
		if err != nil {
			break
		}
		stalls <- time.Duration(milliseconds) * time.Millisecond
	}
	say("closing")
}

func stallIfAsked() {
	select {
	case length := <-stalls:
		say("stalls")
		time.Sleep(length)
	default:
	}
}

func segmentio(bootstrap, group, topic, clientID string, refresh time.Duration) {
	say("subscribed")
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, GroupID: group, Topic: topic, WatchPartitionChanges: true, PartitionWatchInterval: refresh,
		CommitInterval: 5 * time.Second, Dialer: &kafka.Dialer{ClientID: clientID, Timeout: 10 * time.Second, DualStack: true},
	})
	go func() {
		for {
			stallIfAsked()
			soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			_, err := reader.ReadMessage(soon)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return
			}
		}
	}()
	waitForClose()
	reader.Close()
	say("closed")
}

func franz(bootstrap, group, topic, clientID string, refresh time.Duration) {
	say("subscribed")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.MetadataMaxAge(refresh),
		kgo.ClientID(clientID), kgo.MetadataMinAge(min(refresh, 2500*time.Millisecond)),
	)
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			stallIfAsked()
			soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			isClosed := client.PollFetches(soon).IsClientClosed()
			cancel()
			if isClosed {
				return
			}
		}
	}()
	waitForClose()
	client.Close()
	say("closed")
}

func main() {
	milliseconds, err := strconv.Atoi(os.Args[6])
	if err != nil {
		panic(err)
	}
	families := map[string]func(string, string, string, string, time.Duration){"kafka-go": segmentio, "franz-go": franz}
	families[os.Args[1]](os.Args[2], os.Args[3], os.Args[4], os.Args[5], time.Duration(milliseconds)*time.Millisecond)
}
