"""How a client is told to connect: librdkafka's property names, Java's property files, and the way from one to the other."""
