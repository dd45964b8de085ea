// One drop-tail bottleneck in ns-3.37.
// usage: dumbbell --law=ns3::TcpLinuxReno --flows=1 ... (writes samples to --samples, totals to stdout)
//
// Settings that matter for a fair comparison: no queue disc, no delayed ACKs, a minimum timeout of
// 200 ms, buffers of three windows (bulk senders fill them ahead), and payloads that make packets of
// the asked size on the wire. The device's queue does not count the packet in service.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <fstream>
#include <iostream>
#include <memory>

using namespace ns3;

namespace
{

/// PPP 2, IP 20, TCP 20, timestamp option 12.
constexpr uint32_t HEADERS_B = 54;

struct Flow
{
    Ptr<BulkSendApplication> source;
    Ptr<PacketSink> sink;
    double cwnd_segments = 0;
    double ssthresh_segments = 0;
    double rtt_s = 0;
    int state = 0;
};

uint32_t payload_b;
std::vector<std::unique_ptr<Flow>> flows;
Ptr<Queue<Packet>> bottleneck;
uint32_t drops = 0;
std::ofstream samples;
Time interval;

void
Watch(Flow* flow)
{
    Ptr<Socket> socket = flow->source->GetSocket();
    socket->TraceConnectWithoutContext("CongestionWindow",
                                       Callback<void, uint32_t, uint32_t>([flow](uint32_t, uint32_t b) {
                                           flow->cwnd_segments = double(b) / payload_b;
                                       }));
    socket->TraceConnectWithoutContext("SlowStartThreshold",
                                       Callback<void, uint32_t, uint32_t>([flow](uint32_t, uint32_t b) {
                                           flow->ssthresh_segments = double(b) / payload_b;
                                       }));
    socket->TraceConnectWithoutContext(
        "RTT", Callback<void, Time, Time>([flow](Time, Time rtt) { flow->rtt_s = rtt.GetSeconds(); }));
    socket->TraceConnectWithoutContext(
        "CongState",
        Callback<void, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t>(
            [flow](TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state) {
                flow->state = state;
            }));
}

void
Sample()
{
    for (size_t i = 0; i < flows.size(); i++)
    {
        const Flow& flow = *flows[i];
        samples << Simulator::Now().GetSeconds() << ',' << i << ',' << flow.cwnd_segments << ','
                << flow.ssthresh_segments << ',' << flow.state << ',' << flow.sink->GetTotalRx() << ',' << flow.rtt_s << ',' << drops << '\n';
    }
    Simulator::Schedule(interval, &Sample);
}

Ptr<PointToPointNetDevice>
Device(const NetDeviceContainer& pair, int end)
{
    return DynamicCast<PointToPointNetDevice>(pair.Get(end));
}

} // namespace

int
main(int argc, char** argv)
{
    std::string law = "ns3::TcpLinuxReno", file;
    double rate_bps = 1e8, rtt_s = 0.1, spread = 0, duration_s = 10, stagger_s = 0.1, sample_s = 0.01;
    uint32_t count = 1, buffer = 833, packet_b = 1500, ssthresh = 0;
    CommandLine line;
    line.AddValue("law", "TypeId of the congestion control", law);
    line.AddValue("flows", "bulk flows, all with this law", count);
    line.AddValue("rate_bps", "rate of the bottleneck", rate_bps);
    line.AddValue("rtt_s", "round-trip propagation time", rtt_s);
    line.AddValue("spread", "RTTs lie evenly in rtt * (1 -+ spread)", spread);
    line.AddValue("buffer", "packets at the bottleneck, the one in service included", buffer);
    line.AddValue("duration_s", "simulated time", duration_s);
    line.AddValue("packet_b", "bytes of a full packet on the wire", packet_b);
    line.AddValue("ssthresh", "initial slow-start threshold in segments; 0: none", ssthresh);
    line.AddValue("stagger_s", "time between the starts of two flows", stagger_s);
    line.AddValue("samples", "file of samples", file);
    line.AddValue("sample_s", "time between two samples", sample_s);
    line.Parse(argc, argv);

    payload_b = packet_b - HEADERS_B;
    interval = Seconds(sample_s);
    const double window_b = rate_bps * rtt_s * (1 + spread) / 8 + double(buffer) * packet_b;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(law)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(payload_b));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(uint32_t(3 * window_b)));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(uint32_t(3 * window_b)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    if (ssthresh > 0)
    {
        Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(ssthresh * payload_b));
    }
    if (law == "ns3::TcpWestwood")
    {
        Config::SetDefault("ns3::TcpWestwood::ProtocolType", EnumValue(TcpWestwood::WESTWOODPLUS));
    }

    Ptr<Node> left = CreateObject<Node>(), right = CreateObject<Node>();
    NodeContainer sources(count), sinks(count);
    InternetStackHelper stack;
    stack.Install(NodeContainer(NodeContainer(left, right), sources, sinks));

    PointToPointHelper link;
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000000p"));
    // Hosts' links take no time, as in the laboratory.
    const DataRate fast(uint64_t(1e4 * rate_bps));
    link.SetDeviceAttribute("DataRate", DataRateValue(fast));
    Ipv4AddressHelper address("10.0.0.0", "255.255.255.252");
    TrafficControlHelper control;
    auto join = [&](Ptr<Node> a, Ptr<Node> b, double delay_s) {
        link.SetChannelAttribute("Delay", TimeValue(Seconds(delay_s)));
        NetDeviceContainer pair = link.Install(a, b);
        const auto interfaces = address.Assign(pair);
        address.NewNetwork();
        control.Uninstall(pair);
        return std::make_pair(pair, interfaces);
    };

    const auto [middle, unused] = join(left, right, 0);
    Device(middle, 0)->SetDataRate(DataRate(uint64_t(rate_bps)));
    bottleneck = Device(middle, 0)->GetQueue();
    bottleneck->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, buffer - 1));
    // A full device stops the layer above, which drops: the queue's own counter stays at 0.
    left->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop",
        Callback<void, Ptr<const Packet>>([](Ptr<const Packet>) { drops++; }));

    for (uint32_t i = 0; i < count; i++)
    {
        const double mine_s = count == 1 ? rtt_s : rtt_s * (1 + spread * (2.0 * i / (count - 1) - 1));
        join(sources.Get(i), left, mine_s / 4);
        const auto interfaces = join(right, sinks.Get(i), mine_s / 4).second;
        const InetSocketAddress to(interfaces.GetAddress(1), 5001);
        BulkSendHelper bulk("ns3::TcpSocketFactory", to);
        PacketSinkHelper receive("ns3::TcpSocketFactory", to);
        flows.push_back(std::make_unique<Flow>());
        Flow& flow = *flows.back();
        flow.source = DynamicCast<BulkSendApplication>(bulk.Install(sources.Get(i)).Get(0));
        flow.sink = DynamicCast<PacketSink>(receive.Install(sinks.Get(i)).Get(0));
        flow.source->SetAttribute("SendSize", UintegerValue(payload_b));
        flow.source->SetStartTime(Seconds(i * stagger_s));
        if (!file.empty())
        {
            Simulator::Schedule(Seconds(i * stagger_s + 1e-6), &Watch, &flow);
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    if (!file.empty())
    {
        samples.open(file);
        samples.precision(10);
        samples << "time_s,flow,cwnd,ssthresh,state,delivered_b,rtt_s,drops\n";
        Simulator::Schedule(interval, &Sample);
    }
    Simulator::Stop(Seconds(duration_s));
    Simulator::Run();
    std::cout << "delivered "
              << bottleneck->GetTotalReceivedPackets() - bottleneck->GetNPackets() << " payload_b";
    for (const auto& flow : flows)
    {
        std::cout << ' ' << flow->sink->GetTotalRx();
    }
    std::cout << std::endl;
    Simulator::Destroy();
}
