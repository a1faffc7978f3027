"""What changes the number of pods by itself: the arithmetic of Kubernetes and KEDA, and the loop that drives it in a run."""
