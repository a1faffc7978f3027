"""One module per Kafka API; each ends in its `ApiSpec`, which `kgctl.server.service` lists."""
