//! The simulator from outside. One program for all of these tests: it is built once, and long ones run beside short ones.

mod accurate;
mod application;
mod bbr;
mod breaker;
mod closed_form;
mod common;
mod determinism;
mod frames;
mod handshake;
mod impairments;
mod linux_behaviour;
mod linux_trouble;
mod many_flows;
mod misbehaving;
mod network;
mod parallel;
mod path_elements;
mod queues;
mod relations;
mod router;
mod scale;
mod theory;
mod traffic;
mod udt;
mod udt_trouble;
mod utilization;
