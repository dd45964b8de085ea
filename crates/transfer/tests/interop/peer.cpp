// SPDX-License-Identifier: MIT OR Apache-2.0
// The two ends of libudt's file protocol, on libudt's API:
//   peer serve PORT             answer one client with the file that it names
//   peer fetch PORT NAME LOCAL  fetch a file from 127.0.0.1
// Integers go in the host's order. Prints the CPU time of the process, in seconds, when it is done.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <udt/udt.h>

namespace {

[[noreturn]] void fail(const char* what)
{
	std::fprintf(stderr, "%s: %s\n", what, UDT::getlasterror().getErrorMessage());
	std::_Exit(1);
}

void send_all(UDTSOCKET socket, const char* bytes, int count)
{
	while (count > 0) {
		const int sent = UDT::send(socket, bytes, count, 0);
		if (sent == UDT::ERROR)
			fail("send");
		bytes += sent;
		count -= sent;
	}
}

void receive_all(UDTSOCKET socket, char* bytes, int count)
{
	while (count > 0) {
		const int got = UDT::recv(socket, bytes, count, 0);
		if (got == UDT::ERROR)
			fail("recv");
		bytes += got;
		count -= got;
	}
}

sockaddr_in local(const char* port)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

void serve(const char* port)
{
	const UDTSOCKET listener = UDT::socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in address = local(port);
	if (UDT::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == UDT::ERROR)
		fail("bind");
	if (UDT::listen(listener, 10) == UDT::ERROR)
		fail("listen");
	std::puts("listening");
	std::fflush(stdout);
	sockaddr_storage from;
	int from_bytes = sizeof from;
	const UDTSOCKET client = UDT::accept(listener, reinterpret_cast<sockaddr*>(&from), &from_bytes);
	if (client == UDT::INVALID_SOCK)
		fail("accept");
	int32_t name_bytes = 0;
	receive_all(client, reinterpret_cast<char*>(&name_bytes), sizeof name_bytes);
	std::string name(static_cast<size_t>(name_bytes), '\0');
	receive_all(client, name.data(), name_bytes);
	std::fstream file(name, std::ios::in | std::ios::binary | std::ios::ate);
	int64_t size = file ? static_cast<int64_t>(file.tellg()) : -1;
	send_all(client, reinterpret_cast<const char*>(&size), sizeof size);
	int64_t offset = 0;
	if (size > 0 && UDT::sendfile(client, file, offset, size) == UDT::ERROR)
		fail("sendfile");
	UDT::close(client);
	UDT::close(listener);
}

void fetch(const char* port, const char* name, const char* path)
{
	const UDTSOCKET server = UDT::socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in address = local(port);
	if (UDT::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == UDT::ERROR)
		fail("connect");
	const int32_t name_bytes = static_cast<int32_t>(std::strlen(name));
	send_all(server, reinterpret_cast<const char*>(&name_bytes), sizeof name_bytes);
	send_all(server, name, name_bytes);
	int64_t size = 0;
	receive_all(server, reinterpret_cast<char*>(&size), sizeof size);
	if (size < 0)
		std::_Exit(2);
	std::fstream file(path, std::ios::out | std::ios::binary | std::ios::trunc);
	int64_t offset = 0;
	if (size > 0 && UDT::recvfile(server, file, offset, size) == UDT::ERROR)
		fail("recvfile");
	file.close();
	UDT::close(server);
}

} // namespace

int main(int count, char** words)
{
	UDT::startup();
	if (count == 3 && std::strcmp(words[1], "serve") == 0)
		serve(words[2]);
	else if (count == 5 && std::strcmp(words[1], "fetch") == 0)
		fetch(words[2], words[3], words[4]);
	else
		return 3;
	UDT::cleanup();
	rusage used{};
	getrusage(RUSAGE_SELF, &used);
	const timeval user = used.ru_utime, system = used.ru_stime;
	std::printf("%.6f\n", double(user.tv_sec + system.tv_sec) + 1e-6 * double(user.tv_usec + system.tv_usec));
	return 0;
}
