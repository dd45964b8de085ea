"""Files of other tools: iperf3's measurements, packet traces."""
