// A group member on kafkajs. Talks as tests/interop/members/wire_talk.py says.
const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

const given = JSON.parse(process.argv[2]);
const emit = (event, values = {}) => process.stdout.write(JSON.stringify({ event, ...values }) + "\n");
const kafka = new Kafka({ clientId: given.client_id, brokers: given.bootstrap.split(","), logLevel: logLevel.ERROR });

async function produce(count, partitions) {
  const producer = kafka.producer();
  await producer.connect();
  const messages = Array.from({ length: count }, (_, number) => ({ value: String(number), partition: number % partitions }));
  await producer.send({ topic: given.topic, messages });
  await producer.disconnect();
  emit("produced", { left: 0 });
}

async function main() {
  const consumer = kafka.consumer({
    groupId: given.group,
    sessionTimeout: given.session_timeout_ms,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 200,
    metadataMaxAge: 1000,
  });
  const next = new Map();
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = Object.entries(payload.memberAssignment).flatMap(([topic, list]) => list.map((p) => [topic, p]));
    emit("owned", { partitions: partitions.sort((a, b) => a[1] - b[1]) });
  });
  await consumer.connect();
  await consumer.subscribe({ topic: given.topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      next.set(partition, String(BigInt(message.offset) + 1n));
      emit("record", { partition, offset: Number(message.offset) });
    },
  });
  const leave = async () => {
    await consumer.disconnect();
    emit("left");
    process.exit(0);
  };
  const lines = readline.createInterface({ input: process.stdin });
  for await (const line of lines) {
    const command = JSON.parse(line);
    if (command.do === "produce") await produce(command.count, command.partitions);
    if (command.do === "commit") {
      await consumer.commitOffsets([...next].map(([partition, offset]) => ({ topic: given.topic, partition, offset })));
      emit("committed");
    }
    if (command.do === "leave") break;
  }
  await leave();
}

main().catch((error) => {
  emit("error", { text: String(error) });
  process.exit(1);
});
