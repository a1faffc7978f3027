"""Virtual time: coordinator, network, pods and traffic in one loop of discrete events."""
