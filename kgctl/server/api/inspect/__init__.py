"""What a cluster is asked about itself: where data lies, who leads the quorum, which producers and transactions there are."""
