// SPDX-License-Identifier: Apache-2.0
// grpc.cc - gRPC's unary calls over completion queues, with bytes as they are:
// no protobuf, which would copy once more.
//
//     grpc_peer latency|rate|bandwidth adaptive unix|tcp|tls
//
// "adaptive": a thread that waits for a completion queue polls a little before it
// sleeps; gRPC has no setting for that.
#include "../driver.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <iterator>
#include <memory>
#include <string>
#include <unistd.h>

namespace
{

constexpr size_t ADDRESS_BYTES = 128;

[[noreturn]] void give_up(const std::string &why)
{
    fprintf(stderr, "bench: grpc: %s\n", why.c_str());
    _exit(1);
}

// ---- TLS --------------------------------------------------------------------------

// A certificate that signs itself, for one run.
struct Certificate {
    std::string cert, key;
};

std::string slurp(const std::string &path)
{
    std::ifstream file(path);

    return { std::istreambuf_iterator<char>(file), {} };
}

// Before the fork, so that both processes have it.
void prepare(struct trial *t)
{
    char folder[] = "/tmp/bench-grpc-XXXXXX";

    if (strcmp(t->via, "tls") != 0)
        return;
    auto *c = new Certificate;
    if (!mkdtemp(folder))
        give_up("cannot make a folder in /tmp");
    const std::string at = folder;
    const std::string command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                                "-nodes -subj /CN=bench -addext subjectAltName=DNS:bench -keyout " +
                                at + "/key -out " + at + "/cert 2>/dev/null";
    if (system(command.c_str()) != 0)
        give_up("the command openssl cannot make a certificate");
    c->cert = slurp(at + "/cert");
    c->key = slurp(at + "/key");
    if (system(("rm -r " + at).c_str()) != 0)
        give_up("cannot remove " + at);
    t->state = c;
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const struct trial *t)
{
    const auto *c = static_cast<const Certificate *>(t->state);
    grpc::SslServerCredentialsOptions o;

    if (strcmp(t->via, "tls") != 0)
        return grpc::InsecureServerCredentials();
    o.pem_key_cert_pairs.push_back({ c->key, c->cert });
    return grpc::SslServerCredentials(o);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const struct trial *t,
                                                              grpc::ChannelArguments *args)
{
    const auto *c = static_cast<const Certificate *>(t->state);
    grpc::SslCredentialsOptions o;

    if (strcmp(t->via, "tls") != 0)
        return grpc::InsecureChannelCredentials();
    o.pem_root_certs = c->cert;
    args->SetSslTargetNameOverride("bench");
    return grpc::SslCredentials(o);
}

// ---- the callee -------------------------------------------------------------------

struct Service {
    const struct trial *trial;
    grpc::AsyncGenericService generic;
    std::unique_ptr<grpc::ServerCompletionQueue> queue;
    bool first;
};

// One served call: requested, read, answered; deletes itself at the end.
class Served
{
  public:
    explicit Served(Service *s) : service_(s), stream_(&context_)
    {
        s->generic.RequestCall(&context_, &stream_, s->queue.get(), s->queue.get(), this);
    }

    void go(bool ok)
    {
        switch (ok ? step_++ : DONE) {
        case ASKED:
            new Served(service_);
            stream_.Read(&in_, this);
            break;
        case READ:
            if (service_->first)
                expect();
            in_.Clear();
            answer();
            break;
        default:
            delete this;
        }
    }

  private:
    enum { ASKED, READ, DONE };

    void expect()
    {
        grpc::Slice whole;

        service_->first = false;
        if (!in_.DumpToSingleSlice(&whole).ok() || whole.size() != service_->trial->size)
            give_up("a message arrived with another size");
        pair_expect("grpc", whole.begin(), whole.size());
    }

    void answer()
    {
        static const char bytes[PAIR_SMALL] = {};
        grpc::Slice slice(bytes, sizeof bytes, grpc::Slice::STATIC_SLICE);

        stream_.WriteAndFinish(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), grpc::Status::OK,
                               this);
    }

    Service *service_;
    grpc::GenericServerContext context_;
    grpc::GenericServerAsyncReaderWriter stream_;
    grpc::ByteBuffer in_;
    int step_ = ASKED;
};

// Serves until killed: an orderly shutdown of the server is slow.
int serve(struct trial *t)
{
    Service s = { .trial = t, .generic = {}, .queue = {}, .first = t->size > PAIR_SMALL };
    std::string address = "127.0.0.1:0";
    grpc::ServerBuilder b;
    int port = 0;
    void *tag;
    bool ok;

    if (!strcmp(t->via, "unix"))
        address = "unix-abstract:bench-grpc-" + std::to_string(getpid());
    b.AddListeningPort(address, server_credentials(t), &port);
    b.SetMaxReceiveMessageSize(-1);
    b.RegisterAsyncGenericService(&s.generic);
    s.queue = b.AddCompletionQueue();
    auto server = b.BuildAndStart();
    if (!server)
        give_up("cannot listen on " + address);
    if (strcmp(t->via, "unix") != 0)
        address = "127.0.0.1:" + std::to_string(port);
    for (size_t i = 0; i < PAIR_INFLIGHT; i++)
        new Served(&s);
    driver_say(t, address.c_str(), address.size() + 1);
    while (s.queue->Next(&tag, &ok))
        static_cast<Served *>(tag)->go(ok);
    return 0;
}

// ---- the caller -------------------------------------------------------------------

struct Asked {
    grpc::ClientContext context;
    grpc::ByteBuffer answer;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

struct Caller {
    std::unique_ptr<grpc::GenericStub> stub;
    grpc::CompletionQueue queue;
    void *data;
    size_t size;

    void ask()
    {
        auto *a = new Asked;
        grpc::Slice slice(data, size, grpc::Slice::STATIC_SLICE);

        a->reader = stub->PrepareUnaryCall(&a->context, "/bench.Bench/Call",
                                           grpc::ByteBuffer(&slice, 1), &queue);
        a->reader->StartCall();
        a->reader->Finish(&a->answer, &a->status, a);
    }

    void take()
    {
        void *tag;
        bool ok;

        if (!queue.Next(&tag, &ok))
            give_up("the queue ended");
        std::unique_ptr<Asked> a(static_cast<Asked *>(tag));
        if (!a->status.ok())
            give_up(a->status.error_message());
    }
};

void start(struct trial *t)
{
    auto *c = new Caller;
    char address[ADDRESS_BYTES];
    grpc::ChannelArguments args;

    driver_hear(t, address, sizeof address);
    args.SetMaxSendMessageSize(-1);
    auto channel = grpc::CreateCustomChannel(address, channel_credentials(t, &args), args);
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10)))
        give_up(std::string("cannot connect to ") + address);
    c->stub = std::make_unique<grpc::GenericStub>(channel);
    c->size = t->size;
    c->data = pair_memory(t->size, false);
    pair_fill(c->data, t->size);
    t->state = c;
}

void call(struct trial *t)
{
    auto *c = static_cast<Caller *>(t->state);

    c->ask();
    c->take();
}

void flood(struct trial *t, size_t calls)
{
    auto *c = static_cast<Caller *>(t->state);
    size_t asked = 0;

    for (size_t got = 0; got < calls; got++) {
        for (; asked < calls && asked - got < PAIR_INFLIGHT; asked++)
            c->ask();
        c->take();
    }
}

constexpr struct way make_way(const char *via)
{
    return { .peer = "grpc",
             .via = via,
             .modes = "latency rate bandwidth",
             .progress = "adaptive",
             .prepare = prepare,
             .serve = serve,
             .open = start,
             .call = call,
             .flood = flood,
             .close = driver_kill };
}

} // namespace

int main(int argc, char **argv)
{
    const struct way ways[] = { make_way("unix"), make_way("tcp"), make_way("tls") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
