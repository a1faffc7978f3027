package org.apache.kafka.common.test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** In front of Kafka's class of this name, which starts brokers in the tests' own process: starts {@code $SERVER} instead. */
public class KafkaClusterTestKit implements AutoCloseable {

    private static final String ADDRESSES = "export KAFKA_BOOTSTRAP_SERVERS=";

    private final List<String> command = new ArrayList<>();
    private Process server;
    private String addresses;

    private KafkaClusterTestKit(Map<String, Object> settings) {
        command.addAll(List.of(System.getenv("SERVER").split(" ")));
        settings.forEach((name, value) -> command.addAll(List.of("--config", name + "=" + value)));
    }

    public static class Builder {

        private final Map<String, Object> settings = new TreeMap<>();

        public Builder(TestKitNodes nodes) {
            if (nodes.brokerNodes().size() != 1) {
                throw new IllegalArgumentException("one broker");
            }
        }

        public Builder setConfigProp(String name, Object value) {
            settings.put(name, value);
            return this;
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(settings);
        }
    }

    public void format() {
    }

    public void startup() throws IOException {
        server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader output = new BufferedReader(new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
        String line = output.readLine();
        while (line != null && !line.startsWith(ADDRESSES)) {
            line = output.readLine();
        }
        if (line == null) {
            throw new IOException(command + " ended");
        }
        addresses = line.substring(ADDRESSES.length());
    }

    public void waitForReadyBrokers() {
    }

    public Properties clientProperties() {
        Properties found = new Properties();
        found.setProperty("bootstrap.servers", addresses);
        return found;
    }

    @Override
    public void close() throws InterruptedException {
        server.destroy();
        server.waitFor(10, TimeUnit.SECONDS);
    }
}
