// SPDX-License-Identifier: Apache-2.0
// tensorpipe_peer.cc - a peer made of the real libtensorpipe, for tests.
//
// Reads orders from stdin and prints results to stdout, one line
// each. DATA is x<hex> or s<seed>:<length>, a pattern; META is a word
// that may be empty.
//
//   listen URL...              listening ADDRESS of uv; then "pipe N NAME" for each accepted one
//   connect URL                connected N
//   write N mMETA PART...       wrote N | failed N write WHY
//     p:META:DATA payload, t:META:DATA tensor for cpu:0, n:META:DATA tensor without target
//   read N                     message N mMETA PART... | failed N read WHY
//     p:META:LENGTH:HASH, t:META:LENGTH:HASH, n:META:LENGTH:HASH
//   echo                       every accepted pipe answers what it reads; torch's requests
//                              (four payloads) become their responses
//   close N                    closed N
#include <tensorpipe/tensorpipe.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <sstream>

namespace
{

using tensorpipe::Allocation;
using tensorpipe::CpuBuffer;
using tensorpipe::Descriptor;
using tensorpipe::Device;
using tensorpipe::Error;
using tensorpipe::Message;
using tensorpipe::Pipe;
using Bytes = std::vector<uint8_t>;

std::mutex mutex; // of what follows, and of stdout
std::vector<std::shared_ptr<Pipe>> pipes;
bool echo = false;

void say(const std::string &line)
{
    std::lock_guard<std::mutex> lock(mutex);
    std::cout << line << std::endl;
}

std::string hash(const void *data, size_t len)
{
    const auto *bytes = static_cast<const uint8_t *>(data);
    uint64_t h = 0xcbf29ce484222325u, word;
    char text[20];
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        memcpy(&word, bytes + i, 8);
        h = (h ^ word) * 0x100000001b3u;
    }
    for (; i < len; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
    return text;
}

// Everything that a message points to, for as long as it is under way.
struct Owned {
    std::vector<Bytes> parts;
    Message message;

    void *add(Bytes bytes)
    {
        parts.push_back(std::move(bytes));
        return parts.back().data();
    }
};

Bytes make_data(const std::string &text)
{
    Bytes bytes;

    if (text.at(0) == 'x') {
        for (size_t i = 1; i + 1 < text.size(); i += 2)
            bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    } else {
        size_t colon = text.find(':');
        unsigned long seed = std::stoul(text.substr(1, colon - 1));
        bytes.resize(std::stoul(text.substr(colon + 1)));
        for (size_t i = 0; i < bytes.size(); i++)
            bytes[i] = static_cast<uint8_t>(seed + i * 31 + (i >> 8));
    }
    return bytes;
}

void write(size_t n, std::shared_ptr<Pipe> pipe, std::shared_ptr<Owned> owned)
{
    pipe->write(owned->message, [n, owned](const Error &error) {
        std::string at = std::to_string(n);
        say(error ? "failed " + at + " write " + error.what() : "wrote " + at);
    });
}

std::shared_ptr<Owned> parse_message(std::istream &in)
{
    auto owned = std::make_shared<Owned>();
    std::string word;

    std::getline(in >> std::ws, word, ' ');
    owned->message.metadata = word.substr(1); // "m<META>"
    owned->parts.reserve(1024);
    while (in >> word) {
        size_t colon = word.find(':', 2);
        std::string meta = word.substr(2, colon - 2);
        Bytes bytes = make_data(word.substr(colon + 1));
        size_t length = bytes.size();
        void *data = owned->add(std::move(bytes));
        if (word[0] == 'p') {
            owned->message.payloads.push_back({ data, length, meta });
        } else {
            Message::Tensor tensor;
            tensor.buffer = CpuBuffer{ data };
            tensor.length = length;
            tensor.metadata = meta;
            if (word[0] == 't')
                tensor.targetDevice = Device("cpu", 0);
            owned->message.tensors.push_back(tensor);
        }
    }
    return owned;
}

// The buffers for a message, which then is the message to answer with.
std::shared_ptr<Owned> allocate(const Descriptor &d, Allocation *ret)
{
    auto owned = std::make_shared<Owned>();

    owned->parts.reserve(d.payloads.size() + d.tensors.size());
    owned->message.metadata = d.metadata;
    for (const auto &p : d.payloads) {
        void *data = owned->add(Bytes(p.length));
        owned->message.payloads.push_back({ data, p.length, p.metadata });
        ret->payloads.push_back({ data });
    }
    for (const auto &t : d.tensors) {
        Message::Tensor tensor;
        tensor.buffer = CpuBuffer{ owned->add(Bytes(t.length)) };
        tensor.length = t.length;
        tensor.targetDevice = t.targetDevice;
        tensor.metadata = t.metadata;
        owned->message.tensors.push_back(tensor);
        ret->tensors.push_back({ tensor.buffer });
    }
    return owned;
}

void report(size_t n, const Message &m)
{
    std::ostringstream line;

    line << "message " << n << " m" << m.metadata;
    for (const auto &p : m.payloads)
        line << " p:" << p.metadata << ":" << p.length << ":" << hash(p.data, p.length);
    for (const auto &t : m.tensors)
        line << (t.targetDevice.has_value() ? " t:" : " n:") << t.metadata << ":" << t.length << ":"
             << hash(t.buffer.unwrap<CpuBuffer>().ptr, t.length);
    say(line.str());
}

// torch's PYTHON_CALL, with four payloads, becomes its PYTHON_RET.
void make_response(Message *m)
{
    uint32_t type;

    if (m->payloads.size() != 4 || m->payloads[0].length != 4)
        return;
    memcpy(&type, m->payloads[0].data, 4);
    if (type == 0x102)
        type = 0x203;
    memcpy(m->payloads[0].data, &type, 4);
}

void read(size_t n, std::shared_ptr<Pipe> pipe, bool answer)
{
    pipe->readDescriptor([=](const Error &error, Descriptor d) {
        Allocation allocation;
        std::string failed = "failed " + std::to_string(n) + " read ";

        if (error)
            return say(failed + error.what());
        auto owned = allocate(d, &allocation);
        pipe->read(allocation, [=](const Error &error2) {
            if (error2)
                return say(failed + error2.what());
            if (!answer)
                return report(n, owned->message);
            make_response(&owned->message);
            pipe->write(owned->message, [owned](const Error &) {});
        });
        if (answer)
            read(n, pipe, true);
    });
}

size_t keep(std::shared_ptr<Pipe> pipe)
{
    std::lock_guard<std::mutex> lock(mutex);
    pipes.push_back(std::move(pipe));
    return pipes.size() - 1;
}

void accept(std::shared_ptr<tensorpipe::Listener> listener)
{
    listener->accept([listener](const Error &error, std::shared_ptr<Pipe> pipe) {
        if (error)
            return say(std::string("failed listener accept ") + error.what());
        size_t n = keep(pipe);
        say("pipe " + std::to_string(n) + " " + pipe->getRemoteName());
        if (echo)
            read(n, pipe, true);
        accept(listener);
    });
}

std::shared_ptr<Pipe> find(std::istream &in, size_t *ret)
{
    in >> *ret;
    std::lock_guard<std::mutex> lock(mutex);
    return pipes.at(*ret);
}

void obey(tensorpipe::Context &context, const std::string &line)
{
    std::istringstream in(line);
    std::string command, url;
    size_t n = 0;

    in >> command;
    if (command == "listen") {
        std::vector<std::string> urls;
        while (in >> url)
            urls.push_back(url);
        auto listener = context.listen(urls);
        say("listening " + listener->address("uv"));
        accept(listener);
    } else if (command == "connect") {
        in >> url;
        n = keep(context.connect(url));
        say("connected " + std::to_string(n));
    } else if (command == "echo") {
        echo = true;
    } else if (command == "write") {
        auto pipe = find(in, &n);
        write(n, pipe, parse_message(in));
    } else if (command == "read") {
        auto pipe = find(in, &n);
        read(n, pipe, false);
    } else if (command == "close") {
        find(in, &n)->close();
        say("closed " + std::to_string(n));
    } else {
        say("unknown " + command);
    }
}

} // namespace

// With the argument "all" it also has the transport and the channel that
// prefer shared memory, as a torch worker does.
int main(int argc, char **argv)
{
    tensorpipe::Context context(tensorpipe::ContextOptions().name("libtensorpipe"));
    std::string line;

    // The library writes to sockets that the other side may have closed.
    signal(SIGPIPE, SIG_IGN);
    context.registerTransport(0, "uv", tensorpipe::transport::uv::create());
    context.registerChannel(0, "basic", tensorpipe::channel::basic::create());
    if (argc > 1 && !strcmp(argv[1], "all")) {
        context.registerTransport(1, "shm", tensorpipe::transport::shm::create());
        context.registerChannel(1, "cma", tensorpipe::channel::cma::create());
        context.registerChannel(2, "xth", tensorpipe::channel::xth::create());
    }
    while (std::getline(std::cin, line))
        obey(context, line);
    context.close();
    context.join();
    return 0;
}
