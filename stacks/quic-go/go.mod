module lfnlab/stacks/quic-go

go 1.26

require github.com/quic-go/quic-go v0.65.0
